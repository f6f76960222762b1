# A long query on a standby beside everything that the primary may do to its rows: it keeps right
# results, or is cancelled by the same recovery conflict as on a heap table; never wrong.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Removal of dead heap rows (vacuum, pruning) would hold up replay or cancel; memory-optimized
# tables log no such thing, every server removes under its own horizon. So the first part writes to
# them alone.
my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->safe_psql('postgres', q(
CREATE TABLE old_mot (id int PRIMARY KEY, v int) USING mot;
CREATE INDEX ON old_mot (v);
INSERT INTO old_mot SELECT i, i FROM generate_series(1, 5000) i;
));
$primary->backup('base');
# Replay waits for queries here ...
my $patient = new_standby('patient', $primary, 'base', conf => "max_standby_streaming_delay = -1\n");
# ... and cancels them at once here.
my $strict = new_standby('strict', $primary, 'base', conf => "max_standby_streaming_delay = 0\n");
$_->poll_query_until('postgres', q(SELECT count(*) = 5000 FROM old_mot)) for $patient, $strict;

my $sums = 'SELECT (SELECT sum(v) FROM old_mot), (SELECT count(*) FROM old_mot WHERE v BETWEEN 1000 AND 1999)';
my $expected = '12502500|1000';
my $begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM old_mot WHERE v < 0';

# A cursor halfway through, and a snapshot that looks again and again, while every row changes many
# times over, keys included.
my $cursor = $patient->background_psql('postgres');
$cursor->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id, v FROM old_mot ORDER BY id');
is($cursor->query_safe('SELECT count(*), sum(v) FROM old_mot'), '5000|12502500', 'snapshot of the standby before');
$cursor->query_safe('MOVE FORWARD 2500 IN c');
my $snapshot = $patient->background_psql('postgres');
$snapshot->query_safe($begin);
is($snapshot->query_safe($sums), $expected, 'sums of the standby before');
for my $round (1 .. 5)
{
	$primary->safe_psql('postgres', "UPDATE old_mot SET v = v + 10000;
		BEGIN; DELETE FROM old_mot WHERE id % 5 = $round - 1;
		INSERT INTO old_mot SELECT i, $round FROM generate_series(1, 5000) i WHERE i % 5 = $round - 1; COMMIT;");
	wait_replayed($primary, $patient);
	is($snapshot->query_safe($sums), $expected, "round $round: the old snapshot of the standby sees what it saw");
}
# The reclaimer of the standby has had its rounds: many of its naps.
$patient->poll_query_until('postgres', 'SELECT count(*) > 20 FROM generate_series(1, 25) WHERE pg_sleep(0.02) IS NOT NULL');
is($snapshot->query_safe($sums), $expected, 'after rounds of the reclaimer, too');
like($cursor->query_safe('FETCH 1 FROM c'), qr/^2501\|2501$/, 'the cursor goes on where it stood');
is($cursor->query_safe('MOVE FORWARD ALL IN c; SELECT count(*), sum(v) FROM old_mot'), '5000|12502500', 'its snapshot sees what it saw');
is( $patient->safe_psql('postgres', $sums),
	$primary->safe_psql('postgres', $sums),
	'a new snapshot sees the new rows');
$cursor->query_safe('COMMIT');

# Catalog rows that are removed would hold up replay, too: from here on the primary knows of the
# snapshots.
$patient->append_conf('postgresql.conf', "hot_standby_feedback = on\n");
$patient->reload;

# What takes the whole table needs AccessExclusiveLock on the primary: replay waits for the query
# ...
my %taking = (
	'DROP'         => [ 'CREATE TABLE victim (id int PRIMARY KEY) USING mot; INSERT INTO victim SELECT generate_series(1, 1000)', 'DROP TABLE victim' ],
	'TRUNCATE'     => [ '', 'TRUNCATE victim' ],
	'CREATE INDEX' => [ '', 'CREATE INDEX ON victim (id)' ],
	'ALTER TABLE'  => [ '', 'ALTER TABLE victim ADD COLUMN more int DEFAULT 7' ]);
$snapshot->query_safe('COMMIT');
for my $what (sort keys %taking)
{
	$primary->safe_psql('postgres', 'DROP TABLE IF EXISTS victim; ' . $taking{DROP}[0]);
	wait_replayed($primary, $_) for $patient, $strict;
	my $held = $patient->background_psql('postgres');
	my $cancelled = $strict->background_psql('postgres', on_error_stop => 0);
	for my $session ($held, $cancelled)
	{
		is($session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM victim'), '1000', "$what: rows before");
	}
	my $other = $patient->background_psql('postgres');
	$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	my $log_before = -s $strict->logfile;
	$primary->safe_psql('postgres', $taking{$what}[1]);
	is($held->query_safe('SELECT count(*), sum(id) FROM victim'), '1000|500500', "$what: replay waits, the query keeps its rows");
	$held->query_safe('COMMIT');
	wait_replayed($primary, $_) for $patient, $strict;
	# ... or ends it.
	# A session that idles in its transaction loses its connection, and psql ends.
	my ($out) = eval { $cancelled->query('SELECT count(*), sum(id) FROM victim') } // '';
	if ($what eq 'CREATE INDEX')
	{
		# ShareLock on the primary: readers are not in its way.
		is($out, '1000|500500', "$what: no conflict");
	}
	else
	{
		is($out, '', "$what: no rows from a table that is being taken away");
		ok($strict->log_contains('terminating connection due to conflict with recovery', $log_before), "$what: the query was cancelled as with a heap table");
	}
	# A snapshot older than the DDL, that comes to the table only now: the same as on the primary, or
	# an error; never garbage.
	if ($what ne 'DROP')
	{
		my $now = $other->query_safe('SELECT count(*) FROM victim');
		like($now, $what eq 'TRUNCATE' ? qr/^0$/ : qr/^1000$/, "$what: an older snapshot that comes late");
	}
	$_->quit for $held, $other;
	eval { $cancelled->quit };
	sound($patient, "after $what", 'victim') if $what ne 'DROP';
}

# The standby's own reader of a table that was made and filled after its snapshot: not there yet.
my $early = $patient->background_psql('postgres');
$early->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', 'INSERT INTO old_mot SELECT i, 0 FROM generate_series(10001, 10100) i');
wait_replayed($primary, $patient);
is($early->query_safe('SELECT count(*) FROM old_mot WHERE id > 10000'), '0', 'rows after the snapshot are not seen');
is($early->query_safe('COMMIT; SELECT count(*) FROM old_mot WHERE id > 10000'), '100', 'and are by the next one');
$early->quit;

# More indexes come and go than a table has places for: a snapshot keeps the standby from forgetting
# them, and the primary is lost before its reclaimer has said that they are gone.
$primary->append_conf('postgresql.conf', "mot.reclaim_naptime = 60000\n");
$primary->reload;
my $keeps = $patient->background_psql('postgres');
$keeps->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', q(CREATE TABLE indexed (id int PRIMARY KEY, v int) USING mot;
	INSERT INTO indexed SELECT i, i % 10 FROM generate_series(1, 100) i;)
	  . q(CREATE INDEX indexed_v ON indexed (v); DROP INDEX indexed_v;) x 150 . q(CREATE INDEX indexed_v ON indexed (v);));
# Neither do they know that an index is gone for which these keys would be too long.
$primary->safe_psql('postgres', q(CREATE TABLE longs (id int PRIMARY KEY, v text) USING mot; CREATE INDEX longs_v ON longs (v);
	INSERT INTO longs VALUES (1, 'short'); DROP INDEX longs_v;
	INSERT INTO longs VALUES (2, repeat('x', 5000)); UPDATE longs SET v = repeat('y', 5000) WHERE id = 1));
wait_replayed($primary, $_) for $patient, $strict;
$keeps->quit;
crash($primary);
wait_replayed($primary, $_) for $patient, $strict;
is($_->safe_psql('postgres', 'SELECT count(*) FROM indexed WHERE v = 3'), '10', $_->name . ': rows by an index that was made again and again')
  for $primary, $patient, $strict;
is($_->safe_psql('postgres', 'SELECT sum(id), sum(length(v)) FROM longs'), '3|10000', $_->name . ': keys too long for an index that is gone')
  for $primary, $patient, $strict;
sound($_, 'after indexes came and went', 'indexed', 'longs') for $primary, $patient, $strict;

sound($_, 'at the end', 'old_mot') for $patient, $strict;
is($_->safe_psql('postgres', $sums), $primary->safe_psql('postgres', $sums), $_->name . ': the same sums at the end') for $patient, $strict;

# Memory of what replay replaced comes back: the reclaimer of the standby removes what no snapshot
# needs.
no_crash($primary, $patient, $strict);
done_testing();
