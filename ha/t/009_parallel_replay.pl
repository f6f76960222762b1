# Replay with threads: whatever the server calls replayed is seen whole by every snapshot, although
# threads may still be applying it; standbys that are behind, large transactions, tables that come
# and go, and the ends of the threads.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "synchronous_commit = on\n");
$primary->backup('base');
# No reader is cancelled for what happens to catalogs meanwhile.
my $conf = "hot_standby_feedback = on\nmax_standby_streaming_delay = -1\njit = off\n";
my %standbys = (
	always => new_standby('always', $primary, 'base', conf => $conf . "mot.replay_workers = 3\nmot.replay_hand_over = always\n"),
	behind => new_standby('behind', $primary, 'base', conf => $conf . "mot.replay_workers = 2\nmot.replay_hand_over = behind\n"),
	none   => new_standby('none', $primary, 'base', conf => $conf . "mot.replay_workers = 0\n"));
my @standbys = @standbys{qw(always behind none)};

# Beside a load, with readers, and definitions in between.
my $load = start_load($primary);
my @readers = map { start_readers($_) } @standbys{qw(always behind)};
my $rounds = pick(3, 60);
for my $round (1 .. $rounds)
{
	# Rolled back with its rows, dropped with rows, truncated with new ones: threads may have them
	# while the server forgets them.
	$primary->safe_psql('postgres', q(
BEGIN;
CREATE TABLE never (id int PRIMARY KEY, v text) USING mot;
INSERT INTO never SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i;
ROLLBACK;
CREATE TABLE gone (id int PRIMARY KEY, v text) USING mot;
INSERT INTO gone SELECT i, repeat('y', 100) FROM generate_series(1, 3000) i;
CREATE INDEX gone_v ON gone (v);
BEGIN;
TRUNCATE gone;
INSERT INTO gone SELECT i, i FROM generate_series(1, 500) i;
COMMIT;
BEGIN;
DELETE FROM gone WHERE id % 2 = 0;
DROP TABLE gone;
COMMIT;
));
}

# remote_apply: who comes after the commit sees it. Each standby is asked as soon as the primary
# answers.
for my $name (qw(always behind))
{
	$primary->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '$name'");
	$primary->safe_psql('postgres', 'ALTER SYSTEM SET synchronous_commit = remote_apply');
	$primary->reload;
	$primary->poll_query_until('postgres', "SELECT sync_state = 'sync' FROM pg_stat_replication WHERE application_name = '$name'")
	  or die "$name is not synchronous";
	my @wrong;
	for my $id (1 .. pick(25, 600))
	{
		my $row = 900_000 + $id;
		$primary->safe_psql('postgres', "BEGIN; INSERT INTO twin_mot VALUES ($row, 1, 0, 'applied'); INSERT INTO twin_heap VALUES ($row, 1, 0, 'applied'); COMMIT");
		my $seen = $standbys{$name}->safe_psql('postgres', "SELECT count(*) FROM twin_mot WHERE id = $row");
		push @wrong, $row if $seen ne '1';
	}
	is("@wrong", '', "$name: every commit is seen as soon as remote_apply is answered");
	$primary->safe_psql('postgres', "BEGIN; DELETE FROM twin_mot WHERE id > 900000; DELETE FROM twin_heap WHERE id > 900000; COMMIT");
}
$primary->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_standby_names');
$primary->safe_psql('postgres', 'ALTER SYSTEM RESET synchronous_commit');
$primary->reload;

is($standbys{always}->safe_psql('postgres', 'SELECT replay_workers FROM mot.stat_recovery'), '3', 'threads are at work');
is($standbys{none}->safe_psql('postgres', 'SELECT replay_workers FROM mot.stat_recovery'), '0', 'or none, if so asked');

# Standbys that are behind catch up under their readers: a bulk load that is one transaction, and
# everything the load did meanwhile.
$_->safe_psql('postgres', 'SELECT pg_wal_replay_pause()') for @standbys;
$_->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) for @standbys;
my $rows = pick(60_000, 400_000);
$primary->safe_psql('postgres', qq(
CREATE TABLE bulk (id int PRIMARY KEY, k int, v text) USING mot;
CREATE INDEX bulk_k ON bulk (k);
CREATE TABLE bulk_heap (rows bigint);
BEGIN;
INSERT INTO bulk SELECT i, i % 1000, 'row ' || i FROM generate_series(1, $rows) i;
INSERT INTO bulk_heap VALUES ($rows);
COMMIT;
BEGIN;
DELETE FROM bulk WHERE k < 100;
UPDATE bulk SET k = 1000 + k, v = v || '.' WHERE k % 7 = 0;
INSERT INTO bulk_heap SELECT count(*) - $rows FROM bulk;
COMMIT;
));
$_->safe_psql('postgres', 'SELECT pg_wal_replay_resume()') for @standbys;
my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
my $looks = 0;
for my $standby (@standbys)
{
	# One statement, one snapshot: all of a transaction or nothing.
	my $has_all = 0;
	until ($has_all)
	{
		my ($code, $out, $error) = $standby->psql('postgres', q(
SELECT pg_last_wal_replay_lsn() >= ') . $lsn . q(', sum(rows) = (SELECT count(*) FROM bulk) AND sum(rows) = (SELECT count(*) FROM bulk WHERE k >= 0)
FROM bulk_heap HAVING count(*) > 0));
		# Before the table is there.
		next if $code != 0 && $error =~ /does not exist/;
		if ($code != 0 || ($out ne '' && $out !~ /\|t$/)) { fail($standby->name . ": a part of the bulk was seen: $out $error"); last }
		$looks++;
		$has_all = $out =~ /^t\|t$/;
		# Meanwhile sizes can be asked for, and a check that proves nothing says so.
		my ($size_code, $size, $size_error) = $standby->psql('postgres', q(SELECT mot.total_size('bulk') > 0));
		my ($check_code, $check, $check_error) = $standby->psql('postgres', q(SELECT mot.check('bulk')));
		my $is_told = $check_code == 0 || $check_error =~ /was changed by replay while it was checked/;
		if ($size_code != 0 || !$is_told) { fail($standby->name . ": while it replays: $size_error $check_error"); last }
	}
}
ok($looks >= @standbys, "$looks looks at a bulk load that is replayed");

# mot.check waits for what is still to be applied when replay stands still.
for my $standby (@standbys)
{
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
	$standby->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused'));
	sound($standby, 'while replay is paused', @Ledger::TABLES, 'bulk');
	$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
}
stop_readers($_) for @readers;

# Stopped and lost in the midst of it, again and again.
for my $round (1 .. pick(2, 20))
{
	my $how = (qw(fast immediate))[ $round % 2 ];
	$standbys{always}->stop($how);
	$standbys{always}->start;
	crash($standbys{behind});
	agrees($_, "after stop $how, or kill -9, round $round") for @standbys{qw(always behind)};
}
stop_load($load);
same_rows($primary, $_, 'at the end') for @standbys;
sound($_, 'of the bulk', 'bulk') for @standbys;

# The primary is lost; what the standby has received and not replayed is applied by threads while it
# is promoted.
$load = start_load($primary, may_fail => 1);
$standbys{always}->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
my $before = Ledger::written($primary);
$primary->poll_query_until('postgres', "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint > $before + 500") or die 'no load';
$primary->kill9;
stop_load($load);
promote($standbys{always});
agrees($standbys{always}, 'promoted');
sound($standbys{always}, 'promoted', @Ledger::TABLES, 'bulk');
is($standbys{always}->safe_psql('postgres', 'SELECT replay_workers, state FROM mot.stat_recovery'), '0|ready', 'the threads are gone');
like(slurp_file($standbys{always}->logfile), qr/mot replay complete: \d+ row changes in \d+ records, \d+ bytes; 3 threads/, 'and the log tells of them');
my $digest = digest($standbys{always});
crash($standbys{always});
is(digest($standbys{always}), $digest, 'the same rows after a crash of the promoted server');
sound($standbys{always}, 'after its crash recovery', @Ledger::TABLES, 'bulk');

no_crash($primary, @standbys);
done_testing();
