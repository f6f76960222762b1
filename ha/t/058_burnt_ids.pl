# Transaction ids and multixact ids by the hundred million, with autovacuum as PostgreSQL sets it:
# what anti-wraparound vacuums freeze and cut off takes no row away, on the primary, on a standby,
# over restarts and crashes. The heap is the oracle. The full form goes on to where the server
# gives out no ids any more.
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use constant MILLION => 1_000_000;

my $library = abs_path(dirname(__FILE__) . '/../burn.so');
my $primary = new_primary('primary');
$primary->safe_psql('postgres', qq(
CREATE FUNCTION burn_xids(bigint) RETURNS bigint LANGUAGE c AS '$library';
CREATE FUNCTION burn_multixacts(bigint) RETURNS bigint LANGUAGE c AS '$library';
CREATE TABLE quiet_heap AS SELECT i AS id, 'row ' || i AS note FROM generate_series(1, 1000) i;
CREATE TABLE quiet_mot (id int PRIMARY KEY, note text) USING mot;
INSERT INTO quiet_mot SELECT * FROM quiet_heap;
UPDATE pg_database SET datallowconn = true WHERE datname = 'template0'));
$primary->backup('base');
# A standby that can be read takes all ids that it has not seen for running, and has no room for so
# many. So this one is read behind the replay.
my $standby = new_standby('standby', $primary, 'base', conf => "hot_standby = off\n");

# Rows of every fate, none of them looked at again before the ids are burnt.
sub change
{
	my ($node, $round) = @_;
	$node->safe_psql('postgres', join '', map {
		my $at = 10_000 * $round;
		qq(
INSERT INTO twin_$_ SELECT $at + i, i % 50, 0, 'round $round' FROM generate_series(1, 300) i;
UPDATE twin_$_ SET k = k + 1, changes = changes + 1 WHERE id % 5 = $round % 5;
DELETE FROM twin_$_ WHERE id % 97 = $round;
BEGIN;
UPDATE twin_$_ SET note = 'rolled back';
ROLLBACK;
BEGIN;
UPDATE twin_$_ SET changes = changes + 1 WHERE id % 11 = 0;
SAVEPOINT s;
DELETE FROM twin_$_ WHERE id % 11 = 0;
ROLLBACK TO s;
SELECT count(*) FROM (SELECT FROM twin_$_ WHERE id % 3 = 0 FOR SHARE) l;
COMMIT;
BEGIN;
UPDATE twin_$_ SET note = 'prepared $round' WHERE id % 13 = $round;
DELETE FROM twin_$_ WHERE id % 89 = $round;
PREPARE TRANSACTION 'p_$_';)
	} qw(heap mot));
	return;
}

sub oldest
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT max(age(datfrozenxid)), max(mxid_age(datminmxid)) FROM pg_database');
}

# Waits until anti-wraparound vacuums have frozen all that is older than PostgreSQL allows.
sub wait_frozen
{
	my ($node, $what) = @_;
	my $frozen = q(SELECT max(age(datfrozenxid)) < current_setting('autovacuum_freeze_max_age')::bigint AND max(mxid_age(datminmxid)) < 1000000 FROM pg_database);
	# Multixacts are far from a limit, and frozen because we say so.
	for my $database (qw(template0 template1 postgres))
	{
		$node->safe_psql($database, 'SET vacuum_multixact_freeze_table_age = 0; SET vacuum_multixact_freeze_min_age = 0; VACUUM');
	}
	ok($node->poll_query_until('postgres', $frozen), "$what: all databases are frozen") or diag(oldest($node));
	return;
}

sub whole
{
	my ($node, $what) = @_;
	agrees($node, $what);
	is($node->safe_psql('postgres', 'SELECT count(*), (SELECT count(*) FROM quiet_mot) FROM (SELECT * FROM quiet_mot EXCEPT SELECT * FROM quiet_heap) d'),
		'0|1000', $node->name . ": rows that nobody wrote or read stay $what");
	sound($node, $what, @Ledger::TABLES, 'quiet_mot');
	return;
}

# In the full form ids pass 2^32 on the way.
my $rounds = pick(2, 15);
for my $round (1 .. $rounds)
{
	change($primary, $round);
	# Ended by a server that has not seen it begin.
	crash($primary) if $round == 1;
	my @ends = $round % 2 ? ('COMMIT', 'ROLLBACK') : ('ROLLBACK', 'COMMIT');
	$primary->safe_psql('postgres', 'SELECT burn_xids(' . 10 * MILLION . ')');
	$primary->safe_psql('postgres', "$ends[0] PREPARED 'p_$_'") for qw(heap mot);
	$primary->safe_psql('postgres', 'SELECT burn_xids(' . 300 * MILLION . ')');
	$primary->safe_psql('postgres', 'SELECT burn_multixacts(' . int(pick(1, 10) * MILLION / $rounds) . ')');
	# Pages of pg_subtrans, a gigabyte of them, go with a checkpoint.
	$primary->safe_psql('postgres', 'CHECKPOINT');
	wait_frozen($primary, "round $round");
	is($primary->safe_psql('postgres', q(
SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
WHERE relkind = 'r' AND relname ~ '_(heap|mot)$' AND age(relfrozenxid) BETWEEN 0 AND 200000000 AND mxid_age(relminmxid) < 1000000)),
		'account_heap account_mot quiet_heap quiet_mot twin_heap twin_mot', 'tables of both kinds are frozen');
	# Behind what the catalog says.
	my $oldest = sprintf('%s/pg_xact/%04X', $primary->data_dir, (($round - 1) * 310 * MILLION >> 20) & 0xFFF);
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default) { last unless -e $oldest; usleep(100_000) }
	ok(!-e $oldest, 'the commit log is cut off');
	whole($primary, "in round $round");
	$primary->restart if $round == 1;
	if ($round == 2)
	{
		$primary->safe_psql('postgres', 'CHECKPOINT');
		crash($primary);
	}
	whole($primary, "behind a restart in round $round");
	$primary->wait_for_catchup($standby);
	# It reads its checkpoint and what the log has behind it.
	$round % 2 ? $standby->restart : crash($standby);
}
cmp_ok($primary->safe_psql('postgres', 'SELECT pg_current_xact_id()'), '>', $rounds * 300 * MILLION, 'the ids are burnt');
# Where it begins to be read lies behind all ids.
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->wait_for_catchup($standby);
$standby->stop;
$standby->append_conf('postgresql.conf', "hot_standby = on\n");
$standby->start;
same_rows($primary, $standby, 'behind all');
whole($standby, 'behind all');
promote($standby);
whole($standby, 'promoted');

if (is_full())
{
	# Without vacuums, to the very end: writers are told so, readers are not, and VACUUM, which
	# takes no id, makes room again.
	$primary->append_conf('postgresql.conf', "autovacuum = off\n");
	$primary->restart;
	change($primary, $rounds + 1);
	$primary->safe_psql('postgres', "COMMIT PREPARED 'p_$_'") for qw(heap mot);
	my ($code, $said) = (0, '');
	while ($code == 0)
	{
		# What is frozen ends at the newest transaction that has ended: one ends now and then.
		$primary->safe_psql('postgres', 'SELECT pg_current_xact_id()');
		($code, undef, $said) = $primary->psql('postgres', 'SELECT burn_xids(' . 100 * MILLION . ')');
	}
	like($said, qr/is not accepting commands/, 'there are no ids left');
	for my $table (qw(twin_heap twin_mot))
	{
		(undef, undef, $said) = $primary->psql('postgres', "UPDATE $table SET k = k + 1");
		like($said, qr/is not accepting commands/, "$table: writers are told so");
	}
	whole($primary, 'without ids');
	# What the reclaimer has judged follows in moments, and shared catalogs are frozen up to there.
	my $has_ids = 0;
	for (1 .. $PostgreSQL::Test::Utils::timeout_default)
	{
		$primary->safe_psql($_, 'VACUUM (FREEZE)') for qw(template0 template1 postgres);
		$has_ids = ($primary->psql('postgres', 'SELECT pg_current_xact_id()'))[0] == 0;
		last if $has_ids;
		sleep 1;
	}
	ok($has_ids, 'VACUUM makes room for ids');
	$primary->safe_psql('postgres', "UPDATE $_ SET k = k + 1") for qw(twin_heap twin_mot);
	whole($primary, 'with ids again');
	crash($primary);
	whole($primary, 'with ids again, behind a crash');
}
no_crash($primary, $standby);
done_testing();
