# Indexes on expressions, and partial ones, that are built and rebuilt beside writers on tables with
# rows: a crash in each step, prepared transactions, checkpoints, restarts, and a standby with a
# snapshot from before.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\nmax_prepared_transactions = 10\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base', conf => "max_standby_streaming_delay = -1\nhot_standby_feedback = on\nwal_receiver_status_interval = 1\n");
$primary->safe_psql('postgres', q(
CREATE FUNCTION key(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN lower(t); END';
CREATE TABLE t (a int PRIMARY KEY, b text, c int) USING mot;
INSERT INTO t SELECT i, 'Row ' || i, 0 FROM generate_series(1, 2000) i;
CREATE VIEW states AS SELECT coalesce((SELECT concat_ws(' ', CASE WHEN indisready THEN 'ready' END, CASE WHEN indisvalid THEN 'valid' END)
  FROM pg_index WHERE indexrelid = to_regclass('t_b')), 'none') AS state;
));
my $create = 'CREATE UNIQUE INDEX CONCURRENTLY t_b ON t (key(b)) WHERE a > 0';

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

# Writers beside it: keys that move, are taken back, come and go; rows that come into the index and
# leave it.
sub writes
{
	$primary->safe_psql('postgres', q(
UPDATE t SET b = b || 'x' WHERE a % 10 = 1;
DELETE FROM t WHERE a % 10 = 2;
INSERT INTO t SELECT i, 'ROW ' || i, 0 FROM generate_series(2, 2000, 10) i;
BEGIN; UPDATE t SET b = b || 'y'; INSERT INTO t VALUES (100000, 'z', 0); ROLLBACK;
UPDATE t SET a = -a WHERE a % 10 = 3;
UPDATE t SET c = c + 1;
UPDATE t SET a = -a WHERE a < 0;
UPDATE t SET b = 'Row ' || a WHERE key(b) <> 'row ' || a));
	return;
}

my $question = "SET enable_seqscan = off; SELECT count(*), sum(a), min(key(b)), max(key(b)) FROM t WHERE key(b) > 'row' AND a > 0";
my $answer = '2000|2001000|row 1|row 999';
my %left = (
	'keys-before-log' => '',
	'keys-before-rows' => '',
	'build-before-rows' => '',
	'build-before-ready' => '',
	'commit-before-marks' => '',
	'validate-before-rows' => 'ready');
for my $point (sort keys %left)
{
	for my $checkpoint (0, 1)
	{
		my ($pauser, $session) = stop_at($point, $create);
		# A record that is not marked yet is waited for by checkpoints, and at this one nobody has changed
		# anything.
		my $may_write = $point ne 'commit-before-marks';
		my $may_checkpoint = $may_write && $point ne 'keys-before-rows';
		writes() if $may_write;
		$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint && $may_checkpoint;
		$primary->stop('immediate');
		eval { $_->{run}->kill_kill } for $pauser, $session;
		$primary->start;
		my $what = "crash at $point" . ($checkpoint ? ', behind a checkpoint' : '');
		is($primary->safe_psql('postgres', 'TABLE states'), $left{$point}, "$what: what is left");
		sound($primary, $what, 't');
		writes();
		my ($status, undef, $error) = $primary->psql('postgres', "INSERT INTO t VALUES (9999, 'ROW 1', 0)");
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
		# Replayed from before the keys, and loaded with them.
		$primary->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
		crash($primary);
		is($primary->safe_psql('postgres', $question), $answer, "$what: rebuilt, and a crash");
		sound($primary, "$what, rebuilt, and a crash", 't');
		$primary->safe_psql('postgres', $checkpoint ? 'DROP INDEX t_b' : 'DROP INDEX CONCURRENTLY t_b');
	}
}

# A crash when each row has got its key, is torn, and some are changed behind it.
$primary->safe_psql('postgres', $create);
writes();
crash($primary);
is($primary->safe_psql('postgres', $question), $answer, 'changes behind it, and a crash');
sound($primary, 'changes behind it, and a crash', 't');
for my $how ('fast', 'warm')
{
	$primary->append_conf('postgresql.conf', "mot.warm_restart = on\n") if $how eq 'warm';
	$primary->restart;
	$primary->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY t');
	$primary->restart;
	is($primary->safe_psql('postgres', $question), $answer, "after a restart ($how)");
	writes();
	sound($primary, "after a restart ($how)", 't');
}
crash($primary);
is($primary->safe_psql('postgres', $question), $answer, 'and a crash');
$primary->safe_psql('postgres', 'DROP INDEX t_b');

# Prepared transactions: one with a row of before, on which it waits; one that comes when writers
# are asked.
$primary->safe_psql('postgres', "BEGIN; UPDATE t SET b = 'Row 2' WHERE a = 1; DELETE FROM t WHERE a = 2; SELECT a FROM t WHERE a = 3 FOR UPDATE; PREPARE TRANSACTION 'before'");
my $maker = $primary->background_psql('postgres', on_error_stop => 0);
$maker->query_until(qr/begun/, "\\echo begun\n$create;\n");
$primary->poll_query_until('postgres', q(SELECT count(*) > 0 FROM pg_locks WHERE NOT granted)) or die 'nobody waits';
$primary->stop('immediate');
eval { $maker->{run}->kill_kill };
$primary->start;
is($primary->safe_psql('postgres', 'TABLE states'), '', 'prepared before: what is left');
my ($status, undef, $error) = $primary->psql('postgres', "SET lock_timeout = 200; REINDEX INDEX CONCURRENTLY t_b");
isnt($status, 0, 'prepared before: it waits');
$primary->safe_psql('postgres', "COMMIT PREPARED 'before'; DROP INDEX t_b; DROP INDEX IF EXISTS t_b_ccnew");
my ($pauser, $session) = stop_at('validate-before-rows', $create);
$primary->safe_psql('postgres', "BEGIN; UPDATE t SET b = 'Row 2000x' WHERE a = 2000; INSERT INTO t VALUES (2, 'Row 1', 0); PREPARE TRANSACTION 'beside'");
$primary->stop('immediate');
eval { $_->{run}->kill_kill } for $pauser, $session;
$primary->start;
is($primary->safe_psql('postgres', 'TABLE states'), 'ready', 'prepared beside: what is left');
(undef, undef, $error) = $primary->psql('postgres', "SET lock_timeout = 200; INSERT INTO t VALUES (9999, 'row 2000X', 0)");
like($error, qr/lock timeout/, 'prepared beside: its key is waited for');
$primary->safe_psql('postgres', "COMMIT PREPARED 'beside'; UPDATE t SET b = '' WHERE a = 2; UPDATE t SET b = 'Row ' || a WHERE a IN (1, 2000); UPDATE t SET b = 'Row 2' WHERE a = 2; REINDEX INDEX t_b");
is($primary->safe_psql('postgres', $question), $answer, 'prepared beside: ended');
sound($primary, 'prepared beside', 't');
wait_replayed($primary, $standby);
is($standby->safe_psql('postgres', $question), $answer, 'prepared beside: on the standby');
sound($standby, 'prepared beside', 't');

# A standby's snapshot from before sees its rows, whichever way, and reads on where it stands.
$primary->safe_psql('postgres', "UPDATE t SET c = 1 WHERE a <= 3; UPDATE t SET c = 2 WHERE a = 2");
wait_replayed($primary, $standby);
my $old = $standby->background_psql('postgres');
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT a, b FROM t ORDER BY ctid; SELECT count(*) FROM t');
my $first = $old->query_safe('FETCH 1 FROM c');
$primary->safe_psql('postgres', "CREATE INDEX CONCURRENTLY t_c ON t ((c + 1)) WHERE a < 4; UPDATE t SET c = 7 WHERE a = 1");
writes() for 1 .. 3;
wait_replayed($primary, $standby);
is($old->query_safe('SET LOCAL enable_seqscan = off; SELECT a, c FROM t WHERE c + 1 > 1 AND a < 4 ORDER BY a'), "1|1\n2|2\n3|1", 'an older snapshot sees its rows');
is($old->query_safe("FETCH ALL FROM c") =~ tr/\n//, 1998, 'and reads on');
$old->query_safe('COMMIT');
$old->quit;
sound($standby, 'an older snapshot', 't');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT a FROM t WHERE c + 1 > 1 AND a < 4 ORDER BY a'), "1\n2\n3", 'younger ones use it');

promote($standby);
is($standby->safe_psql('postgres', $question), $answer, 'promoted');
$standby->safe_psql('postgres', "CREATE INDEX CONCURRENTLY t_d ON t ((c + 2)); REINDEX INDEX CONCURRENTLY t_b");
crash($standby);
is($standby->safe_psql('postgres', $question), $answer, 'promoted, built and crashed');
sound($standby, 'promoted', 't');
no_crash($standby);
done_testing();
