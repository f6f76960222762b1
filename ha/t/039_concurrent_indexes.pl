# Indexes that are built, rebuilt and dropped beside writers: a crash in each step, and a standby
# beside them.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
$primary->safe_psql('postgres', q(
CREATE TABLE t (a int PRIMARY KEY, b int, c int) USING mot;
INSERT INTO t SELECT i, i, 0 FROM generate_series(1, 2000) i;
CREATE VIEW states AS SELECT coalesce((SELECT concat_ws(' ', CASE WHEN indisready THEN 'ready' END, CASE WHEN indisvalid THEN 'valid' END)
  FROM pg_index WHERE indexrelid = to_regclass('t_b')), 'none') AS state;
));

# Begins a statement, and returns when it stands at a point.
sub stop_at
{
	my ($point, $statement) = @_;
	my $pauser = $primary->background_psql('postgres');
	$pauser->query_safe("SELECT mot.pause_at('$point')");
	my $session = $primary->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	$primary->safe_psql('postgres', "SELECT mot.wait_until_paused('$point')");
	return ($pauser, $session);
}

# Writers beside it: keys that move, are taken back, come and go.
sub writes
{
	$primary->safe_psql('postgres', q(
UPDATE t SET b = b + 10000 WHERE a % 10 = 1;
DELETE FROM t WHERE a % 10 = 2;
INSERT INTO t SELECT i, i + 20000, 0 FROM generate_series(2, 2000, 10) i;
BEGIN; UPDATE t SET b = b + 50000; INSERT INTO t VALUES (0, 0, 0); ROLLBACK;
UPDATE t SET c = c + 1;
UPDATE t SET b = a WHERE b <> a));
	return;
}

my $question = 'SET enable_seqscan = off; SELECT count(*), sum(a), min(b), max(b) FROM t WHERE b > 0';
my $answer = '2000|2001000|1|2000';
my %left = (
	'build-before-rows'       => '',
	'build-before-duplicates' => '',
	'build-before-ready'      => '',
	'commit-before-marks'     => '',
	'validate-before-rows'    => 'ready');
for my $point (sort keys %left)
{
	for my $checkpoint (0, 1)
	{
		# The point of a commit's is come to when the build commits, the first transaction with a record.
		my ($pauser, $session) = stop_at($point, 'CREATE UNIQUE INDEX CONCURRENTLY t_b ON t (b)');
		writes() if $point ne 'commit-before-marks';
		# Checkpoints wait for who has logged and not marked.
		$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint && $point ne 'commit-before-marks';
		$primary->stop('immediate');
		eval { $_->{run}->kill_kill } for $pauser, $session;
		$primary->start;
		my $what = "crash at $point" . ($checkpoint ? ', behind a checkpoint' : '');
		is($primary->safe_psql('postgres', 'TABLE states'), $left{$point}, "$what: what is left");
		sound($primary, $what, 't');
		writes();
		my ($status, undef, $error) = $primary->psql('postgres', 'INSERT INTO t VALUES (9999, 1, 0)');
		if ($left{$point} eq 'ready')
		{
			like($error, qr/duplicate key value violates unique constraint "t_b"/, "$what: it refuses duplicates");
		}
		else
		{
			is($status, 0, "$what: it refuses nobody");
			$primary->safe_psql('postgres', 'DELETE FROM t WHERE a = 9999');
		}
		sound($primary, "$what, written", 't');
		$primary->safe_psql('postgres', $checkpoint ? 'REINDEX INDEX t_b' : 'REINDEX INDEX CONCURRENTLY t_b');
		is($primary->safe_psql('postgres', $question), $answer, "$what: rebuilt");
		wait_replayed($primary, $standby);
		is($standby->safe_psql('postgres', $question), $answer, "$what: on the standby");
		sound($_, "$what, rebuilt", 't') for $primary, $standby;
		$primary->safe_psql('postgres', $checkpoint ? 'DROP INDEX t_b' : 'DROP INDEX CONCURRENTLY t_b');
	}
}

# What a valid index has is there after a crash and a restart, with writers that began before it was
# made.
my $writer = $primary->background_psql('postgres');
$writer->query_safe('BEGIN; UPDATE t SET b = b + 30000 WHERE a % 3 = 0');
my $maker = $primary->background_psql('postgres');
$maker->query_until(qr/begun/, "\\echo begun\nCREATE UNIQUE INDEX CONCURRENTLY t_b ON t (b);\n");
$primary->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND locktype = 'virtualxid')) or die 'nobody waits';
writes_beside();
$writer->query_safe('UPDATE t SET b = a WHERE a % 3 = 0; COMMIT');
$writer->quit;
$primary->poll_query_until('postgres', q(SELECT state = 'ready valid' FROM states)) or die 'the index is not made';
$maker->quit;
$primary->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY t');
for my $how ('immediate', 'fast')
{
	$primary->stop($how);
	$primary->start;
	is($primary->safe_psql('postgres', $question), $answer, "after a stop ($how)");
	sound($primary, "after a stop ($how)", 't');
}
wait_replayed($primary, $standby);

# A standby's query holds up the drop of the index that it reads.
my $reader = $standby->background_psql('postgres');
$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $question");
$primary->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_b');
is($reader->query_safe($question), $answer, 'a reader of a standby, beside a rebuilt index');
$reader->query_safe('COMMIT');
$reader->quit;
wait_replayed($primary, $standby);
is($standby->safe_psql('postgres', $question), $answer, 'and behind it');
sound($standby, 'at the end', 't');
promote($standby);
is($standby->safe_psql('postgres', $question), $answer, 'promoted');
sound($standby, 'promoted', 't');
no_crash($standby);
done_testing();

# As `writes`, beside a writer of every third row.
sub writes_beside
{
	$primary->safe_psql('postgres', 'UPDATE t SET c = c + 1 WHERE a % 3 = 1; UPDATE t SET b = b + 10000 WHERE a % 3 = 2; UPDATE t SET b = a WHERE a % 3 = 2');
	return;
}
