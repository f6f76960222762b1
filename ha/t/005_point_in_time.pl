# Recovery from a base backup and an archive to a time, a transaction, a position, a restore point and to the first consistent moment, and
# a loss of the recovered server right after; delayed apply.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', archiving => 1);
$primary->safe_psql('postgres', q(
CREATE TABLE mark_heap (n int PRIMARY KEY);
CREATE FOREIGN TABLE mark_mot (n int PRIMARY KEY, v text) SERVER mot;
));
my $load = start_load($primary);
my $checkpoints = start_checkpoints($primary);
$primary->backup('base');
# The archive has the WAL that this one does not bring along.
$primary->backup('no_wal', backup_options => [ '-X', 'none' ]);
stop_checkpoints($checkpoints);
my $delayed = new_standby('delayed', $primary, 'base', conf => "recovery_min_apply_delay = '1h'\n");

# Every mark is one transaction over both kinds of table; answers its transaction id.
my $n = 0;
sub mark
{
	$n++;
	return $primary->safe_psql('postgres',
		"BEGIN; INSERT INTO mark_heap VALUES ($n); INSERT INTO mark_mot VALUES ($n, 'mark'); SELECT pg_current_xact_id(); COMMIT");
}

mark();
my $time = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
my $xid = mark();
my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
mark();
$primary->safe_psql('postgres', q(SELECT pg_create_restore_point('here')));
mark();
stop_load($load);
my $last = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
$primary->poll_query_until('postgres', "SELECT last_archived_wal >= '$last' FROM pg_stat_archiver") or die 'not archived';

my @targets = (
	[ 'time',          "recovery_target_time = '$time'",                                   1 ],
	[ 'xid',           "recovery_target_xid = '$xid'",                                     2 ],
	[ 'xid_exclusive', "recovery_target_xid = '$xid'\nrecovery_target_inclusive = off",    1 ],
	[ 'lsn',           "recovery_target_lsn = '$lsn'",                                     2 ],
	[ 'name',          "recovery_target_name = 'here'",                                    3 ],
	[ 'immediate',     "recovery_target = 'immediate'",                                    0 ],
	[ 'end',           '',                                                                 4 ]);
for my $target (@targets)
{
	my ($name, $conf, $marks) = @$target;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	# Each on its own: not on the timelines that the others left in the archive.
	$node->append_conf('postgresql.conf', "$conf\nrecovery_target_action = promote\nrecovery_target_timeline = 1\narchive_mode = off\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not end recovery';
	my $state = 'SELECT (SELECT count(*) FROM mark_heap), (SELECT count(*) FROM mark_mot)';
	is($node->safe_psql('postgres', $state), "$marks|$marks", "$name: marks up to the target");
	agrees($node, 'at the target');
	sound($node, 'at the target', @Ledger::TABLES, 'mark_mot');
	my $digest = digest($node);
	# The recovered server is lost before a checkpoint of its own, and after one.
	for my $when ('at once', is_full() || $name eq 'end' ? 'after a checkpoint' : ())
	{
		$node->safe_psql('postgres', 'CHECKPOINT') if $when ne 'at once';
		my $log = -s $node->logfile;
		crash($node);
		is(digest($node), $digest, "$name: the same rows when lost $when");
		# The checkpoint at the end of recovery counts, and is known to lie on the new timeline.
		ok(!$node->log_contains('mot replayed', $log), "$name: nothing from before that checkpoint was needed when lost $when");
		is($node->safe_psql('postgres', $state), "$marks|$marks", "$name: the same marks when lost $when");
	}
	my $after = start_load($node);
	stop_load($after);
	agrees($node, 'after new work');
	$node->restart;
	agrees($node, 'after a restart');
	sound($node, 'after a restart');
	no_crash($node);
	$node->stop('immediate');
}

# A target at which the server stops, another at which it pauses and is read, and the end: one after the other on one server.
my $staged = PostgreSQL::Test::Cluster->new('staged');
$staged->init_from_backup($primary, 'no_wal', has_restoring => 1, standby => 0);
$staged->append_conf('postgresql.conf', "archive_mode = off\nrecovery_target_timeline = 1\nrecovery_target_xid = '$xid'\nrecovery_target_action = shutdown\n");
my $marks = 'SELECT (SELECT count(*) FROM mark_heap), (SELECT count(*) FROM mark_mot)';
system('pg_ctl', '-D', $staged->data_dir, '-l', $staged->logfile, '-w', 'start');
$staged->wait_for_log(qr/shutdown at recovery target.*database system is shut down/s);
$staged->append_conf('postgresql.conf', "recovery_target_xid = ''\nrecovery_target_name = 'here'\nrecovery_target_action = pause\n");
$staged->start;
$staged->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die 'does not pause';
is($staged->safe_psql('postgres', $marks), '3|3', 'a backup without WAL, stopped at a target, paused at the next: marks up to that');
agrees($staged, 'paused at a target');
sound($staged, 'paused at a target', @Ledger::TABLES, 'mark_mot');
crash($staged);
$staged->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die 'does not pause again';
is($staged->safe_psql('postgres', $marks), '3|3', 'the same when it was lost there');
$staged->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$staged->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not end recovery';
is($staged->safe_psql('postgres', $marks), '3|3', 'resumed, it ends there');
crash($staged);
agrees($staged, 'resumed, and lost');
sound($staged, 'resumed, and lost', @Ledger::TABLES, 'mark_mot');
no_crash($staged);
$staged->stop('immediate');

# Delayed apply: nothing of the marks is seen while the delay lasts, in neither table, and all of it after.
is( $delayed->safe_psql('postgres', 'SELECT (SELECT count(*) FROM mark_heap), (SELECT count(*) FROM mark_mot)'),
	'0|0', 'delayed standby: no mark yet');
agrees($delayed, 'while apply is delayed');
$delayed->append_conf('postgresql.conf', 'recovery_min_apply_delay = 0');
$delayed->reload;
my $readers = start_readers($delayed, may_fail => 1);
same_rows($primary, $delayed, 'when the delay is taken away');
stop_readers($readers);
is( $delayed->safe_psql('postgres', 'SELECT (SELECT count(*) FROM mark_heap), (SELECT count(*) FROM mark_mot)'),
	'4|4', 'delayed standby: all marks');

no_crash($primary, $delayed);
done_testing();
