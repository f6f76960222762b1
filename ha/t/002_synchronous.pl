# What synchronous_commit promises for memory-optimized tables, with one and with a quorum of
# standbys.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');
$primary->backup('base');
my $one = new_standby('one', $primary, 'base');
my $two = new_standby('two', $primary, 'base');

sub synchronous
{
	my ($names) = @_;
	$primary->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$primary->reload;
	$primary->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'
		AND (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) = "
		  . ($names =~ /ANY|FIRST 2/ ? 2 : $names eq '' ? 0 : 1))
	  or die 'no synchronous standby';
	return;
}

# remote_apply: what COMMIT has returned is seen on the standby at once, heap and MOT, beside a load
# that keeps replay busy.
synchronous('one');
my $load = start_load($primary, clients => 2);
my $writer = $primary->background_psql('postgres');
my $reader = $one->background_psql('postgres');
$writer->query_safe('SET synchronous_commit = remote_apply');
$writer->query_safe($_) for 'CREATE TABLE seen_heap (n int PRIMARY KEY)',
  'CREATE TABLE seen_mot (n int PRIMARY KEY, v text) USING mot';
my ($rounds, $missed) = (pick(60, 600), '');
for my $n (1 .. $rounds)
{
	$writer->query_safe("BEGIN; INSERT INTO seen_heap VALUES ($n); INSERT INTO seen_mot VALUES ($n, 'v'); COMMIT");
	my $seen = $reader->query_safe('SELECT (SELECT max(n) FROM seen_heap), (SELECT max(n) FROM seen_mot)');
	$missed .= " $seen after $n" if $seen ne "$n|$n";
	# A transaction of memory-optimized tables alone, and one statement without a block.
	$writer->query_safe("UPDATE seen_mot SET v = 'changed' WHERE n = $n");
	$seen = $reader->query_safe("SELECT v FROM seen_mot WHERE n = $n");
	$missed .= " update of $n" if $seen ne 'changed';
}
is($missed, '', "remote_apply: $rounds commits are seen on the standby when COMMIT returns");

# on and remote_write: the standby has flushed or written past the commit when it returns.
for my $mode ([ 'on', 'flush_lsn' ], [ 'remote_write', 'write_lsn' ])
{
	my ($setting, $column) = @$mode;
	$writer->query_safe("SET synchronous_commit = '$setting'");
	# The row's own LSN comes from the position before the statement: what follows it must be there.
	my $before = $writer->query_safe('SELECT pg_current_wal_insert_lsn()');
	$writer->query_safe("INSERT INTO seen_mot SELECT n + 100000, '$setting' FROM generate_series(1, 100) n");
	is($writer->query_safe("SELECT $column > '$before'::pg_lsn FROM pg_stat_replication WHERE application_name = 'one'"),
		't', "synchronous_commit = $setting: $column has passed the commit");
	$writer->query_safe('DELETE FROM seen_mot WHERE n > 100000');
}

# A commit waits for its standby, and is seen by nobody meanwhile; when the standby is back it goes
# on.
$one->stop;
$writer->query_safe("SET synchronous_commit = 'on'");
$writer->query_until(qr/sent/, "\\echo sent\nINSERT INTO seen_mot VALUES (-1, 'waits');\n");
$primary->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%waits%'")
  or die 'the commit does not wait';
is($primary->safe_psql('postgres', 'SELECT count(*) FROM seen_mot WHERE n = -1'), '0', 'a commit that waits for its standby is not seen yet');
$one->start;
is($writer->query_safe('SELECT count(*) FROM seen_mot WHERE n = -1'), '1', 'it is seen when the standby has it');

# Quorum: any one of two is enough.
synchronous('ANY 1 (one, two)');
$two->stop;
$writer->query_safe("INSERT INTO seen_mot VALUES (-2, 'quorum')");
$two->start;
pass('a quorum of one of two commits without the other');

# Two of two, and both of a list: one is not enough; the other, when it is back, has the row.
for my $names ('ANY 2 (one, two)', 'FIRST 2 (one, two)')
{
	synchronous($names);
	$two->stop;
	$writer->query_until(qr/sent/, "\\echo sent\nINSERT INTO seen_mot VALUES (-3, '$names');\n");
	$primary->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%$names%'")
	  or die 'the commit does not wait';
	is($primary->safe_psql('postgres', 'SELECT count(*) FROM seen_mot WHERE n = -3'), '0', "$names: a commit waits for both");
	$two->start;
	is($writer->query_safe('DELETE FROM seen_mot WHERE n = -3 RETURNING v'), $names, "$names: it is seen when both have it");
}
stop_load($load);
$writer->quit;
$reader->quit;

# The primary is lost under acknowledged commits, one after the other, and a standby takes its
# place: whatever the setting, it has every one of them while it lives itself. Of a quorum any
# standby may have acknowledged, so the one that has received most is promoted; here the other is
# far behind.
synchronous('ANY 1 (one, two)');
my $receiver = $one->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
kill 'STOP', $receiver;
my $first = $one->safe_psql('postgres', 'SELECT pg_last_wal_receive_lsn()');
failover('on', 200000, $two);
is($one->safe_psql('postgres', "SELECT pg_last_wal_receive_lsn() - '$first'"), '0', 'a quorum did not need the other standby');
# With what the lost primary had sent on top it could be ahead of the new one.
kill 'TERM', $receiver;
kill 'CONT', $receiver;

# The one that was behind follows the new primary, synchronously, and is next.
$one->enable_streaming($two);
$one->reload;
failover('remote_apply', 300000, $one, $two);
$one->backup('base');
my $three = new_standby('three', $one, 'base');
failover('remote_write', 400000, $three, $one);

# Loses the primary while commits are acknowledged, the first of them number `$from`; promotes
# `$new`, which must have them all. It is the primary then.
sub failover
{
	my ($setting, $from, $new, $old) = @_;
	my $what = "synchronous_commit = $setting";
	if (defined $old)
	{
		$primary = $old;
		synchronous($new->name);
	}
	my $acknowledged = acknowledged_until_killed($primary, $setting, $from);
	promote($new);
	my $have = $new->safe_psql('postgres', "SELECT string_agg(n::text, ',' ORDER BY n) FROM seen_mot WHERE n >= $from");
	my %have = map { $_ => 1 } split /,/, $have;
	my @lost = grep { !$have{$_} } @$acknowledged;
	cmp_ok(scalar(@$acknowledged), '>', 20, "$what: commits were acknowledged before the primary was lost");
	is("@lost", '', "$what: " . scalar(@$acknowledged) . ' acknowledged commits are on ' . $new->name);
	is( $new->safe_psql('postgres', "SELECT count(*) FROM (SELECT n FROM seen_mot WHERE n >= $from EXCEPT SELECT n FROM seen_heap) x"),
		'0', "$what: with their heap halves");
	agrees($new, "after the loss of the primary, $what");
	sound($new, "after the loss of the primary, $what", @Ledger::TABLES, 'seen_mot');
	return;
}

# Commits one by one, until the server is killed in the middle; answers those that were
# acknowledged.
sub acknowledged_until_killed
{
	my ($node, $setting, $from) = @_;
	my $sql = "SET synchronous_commit = $setting;\n" . join '', map {
		my $n = $from + $_;
		"BEGIN; INSERT INTO seen_mot VALUES ($n, 'x'); INSERT INTO seen_heap VALUES ($n); COMMIT;\n\\echo $n\n"
	} 1 .. 20000;
	my $file = $node->basedir . '/commits.sql';
	append_to_file($file, $sql);
	my ($out, $err) = ('', '');
	my $run = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', $file ],
		'<', \undef, '>', \$out, '2>', \$err);
	my $last = $from + 30;
	$run->pump until $out =~ /\n$last\n/;
	$node->kill9;
	$run->finish;
	return [ grep { /^\d+$/ } split /\n/, $out ];
}

no_crash($one, $two, $three);
done_testing();
