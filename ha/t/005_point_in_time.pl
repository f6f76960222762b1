# Recovery from a base backup and an archive to a time, a transaction, a position, a restore point
# and to the first consistent moment, with prepared transactions that are prepared and ended on
# either side of it, and a loss of the recovered server right after; delayed apply.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', archiving => 1);
$primary->safe_psql('postgres', q(
CREATE TABLE mark_heap (n int PRIMARY KEY);
CREATE TABLE mark_mot (n int PRIMARY KEY, v text) USING mot;
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

# A prepared transaction over both kinds of table; answers its transaction id.
sub prepare_mark
{
	my ($name, $n) = @_;
	return $primary->safe_psql('postgres', "BEGIN; INSERT INTO mark_heap VALUES ($n); INSERT INTO mark_mot VALUES ($n, '$name');
		SELECT pg_current_xact_id(); PREPARE TRANSACTION '$name'");
}

mark();
# Ended before every target but the first moment, across them, and prepared behind them.
prepare_mark('done', 101);
my $across = prepare_mark('across', 102);
$primary->safe_psql('postgres', q(COMMIT PREPARED 'done'));
my $time = $primary->safe_psql('postgres', 'SELECT clock_timestamp()');
my $xid = mark();
my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
mark();
$primary->safe_psql('postgres', q(SELECT pg_create_restore_point('here')));
prepare_mark('behind', 103);
$primary->safe_psql('postgres', q(COMMIT PREPARED 'across'));
mark();
stop_load($load);
wait_archived($primary);

# The marks up to the target, those of prepared transactions, and who is still prepared.
my @targets = (
	[ 'time',      "recovery_target_time = '$time'",                                    1, '101',     'across' ],
	[ 'xid',       "recovery_target_xid = '$xid'",                                      2, '101',     'across' ],
	[ 'lsn',       "recovery_target_lsn = '$lsn'",                                      2, '101',     'across' ],
	[ 'name',      "recovery_target_name = 'here'",                                     3, '101',     'across' ],
	[ 'prepared',  "recovery_target_xid = '$across'\nrecovery_target_inclusive = off", 3, '101',     'across behind' ],
	[ 'immediate', "recovery_target = 'immediate'",                                     0, '',        '' ],
	[ 'end',       '',                                                                  4, '101 102', 'behind' ]);
push @targets,
  [ 'xid_exclusive',      "recovery_target_xid = '$xid'\nrecovery_target_inclusive = off", 1, '101',     'across' ],
  [ 'prepared_inclusive', "recovery_target_xid = '$across'",                                3, '101 102', 'behind' ]
  if is_full();
for my $target (@targets)
{
	my ($name, $conf, $marks, $ended, $prepared) = @$target;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
	# Each on its own: not on the timelines that the others left in the archive.
	$node->append_conf('postgresql.conf', "$conf\nrecovery_target_action = promote\nrecovery_target_timeline = 1\narchive_mode = off\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not end recovery';
	my $state = q(SELECT (SELECT count(*) FROM mark_heap WHERE n < 100), (SELECT count(*) FROM mark_mot WHERE n < 100),
		(SELECT string_agg(n::text, ' ' ORDER BY n) FROM mark_heap WHERE n > 100), (SELECT string_agg(n::text, ' ' ORDER BY n) FROM mark_mot WHERE n > 100),
		(SELECT string_agg(gid, ' ' ORDER BY gid) FROM pg_prepared_xacts));
	my $expected = "$marks|$marks|$ended|$ended|$prepared";
	is($node->safe_psql('postgres', $state), $expected, "$name: marks up to the target");
	agrees($node, 'at the target');
	sound($node, 'at the target');
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
		is($node->safe_psql('postgres', $state), $expected, "$name: the same marks when lost $when");
	}
	# Whoever is still prepared can be ended here, either way.
	my $now = $ended;
	if ($prepared =~ /across/)
	{
		$node->safe_psql('postgres', q(COMMIT PREPARED 'across'));
		$now .= ' 102';
	}
	$node->safe_psql('postgres', q(ROLLBACK PREPARED 'behind')) if $prepared =~ /behind/;
	is($node->safe_psql('postgres', $state), "$marks|$marks|$now|$now|", "$name: prepared transactions are ended here");
	# It waits for whoever has changed the table.
	sound($node, 'without prepared transactions', 'mark_mot');
	if (is_full() || $name =~ /^(name|end)$/)
	{
		my $after = start_load($node);
		stop_load($after);
		agrees($node, 'after new work');
		$node->restart;
		agrees($node, 'after a restart');
		sound($node, 'after a restart', @Ledger::TABLES, 'mark_mot');
	}
	no_crash($node);
	$node->stop('immediate');
}

# A target at which the server stops, another at which it pauses and is read, and the end: one after
# the other on one server.
my $staged = PostgreSQL::Test::Cluster->new('staged');
$staged->init_from_backup($primary, 'no_wal', has_restoring => 1, standby => 0);
$staged->append_conf('postgresql.conf', "archive_mode = off\nrecovery_target_timeline = 1\nrecovery_target_xid = '$xid'\nrecovery_target_action = shutdown\n");
my $marks = 'SELECT (SELECT count(*) FROM mark_heap WHERE n < 100), (SELECT count(*) FROM mark_mot WHERE n < 100)';
system('pg_ctl', '-D', $staged->data_dir, '-l', $staged->logfile, '-w', 'start');
$staged->wait_for_log(qr/shutdown at recovery target.*database system is shut down/s);
$staged->append_conf('postgresql.conf', "recovery_target_xid = ''\nrecovery_target_name = 'here'\nrecovery_target_action = pause\n");
$staged->start;
$staged->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die 'does not pause';
is($staged->safe_psql('postgres', $marks), '3|3', 'a backup without WAL, stopped at a target, paused at the next: marks up to that');
agrees($staged, 'paused at a target');
sound($staged, 'paused at a target');
crash($staged);
$staged->poll_query_until('postgres', q(SELECT pg_get_wal_replay_pause_state() = 'paused')) or die 'does not pause again';
is($staged->safe_psql('postgres', $marks), '3|3', 'the same when it was lost there');
$staged->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$staged->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not end recovery';
is($staged->safe_psql('postgres', $marks), '3|3', 'resumed, it ends there');
crash($staged);
agrees($staged, 'resumed, and lost');
$staged->safe_psql('postgres', q(COMMIT PREPARED 'across'));
sound($staged, 'resumed, and lost', @Ledger::TABLES, 'mark_mot');
no_crash($staged);
$staged->stop('immediate');

# The same without slots: there the checkpoint worker leaves with the server alone, of whose end
# nobody but the process that replays tells it.
my $slotless = PostgreSQL::Test::Cluster->new('slotless');
$slotless->init_from_backup($primary, 'base', has_restoring => 1, standby => 0);
$slotless->append_conf('postgresql.conf',
	"archive_mode = off\nmax_replication_slots = 0\nwal_keep_size = '4GB'\nrecovery_target_timeline = 1\nrecovery_target_xid = '$xid'\nrecovery_target_action = shutdown\n");
system('pg_ctl', '-D', $slotless->data_dir, '-l', $slotless->logfile, '-w', 'start');
my $has_stopped = eval { $slotless->wait_for_log(qr/shutdown at recovery target.*database system is shut down/s) };
ok($has_stopped, 'a server without slots stops at a target');
system('pg_ctl', '-D', $slotless->data_dir, '-m', 'immediate', 'stop') unless $has_stopped;
$slotless->append_conf('postgresql.conf', "recovery_target_xid = ''\nrecovery_target_name = 'here'\nrecovery_target_action = promote\n");
$slotless->start;
$slotless->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not end recovery';
is($slotless->safe_psql('postgres', $marks), '3|3', 'and goes on from there to the next');
agrees($slotless, 'stopped at a target, and recovered to the next');
no_crash($slotless);
$slotless->stop('immediate');

# Delayed apply: nothing of the marks is seen while the delay lasts, in neither table, and all of it
# after.
is($delayed->safe_psql('postgres', $marks), '0|0', 'delayed standby: no mark yet');
agrees($delayed, 'while apply is delayed');
crash($delayed);
is($delayed->safe_psql('postgres', $marks), '0|0', 'delayed standby, lost: no mark yet');
agrees($delayed, 'while apply is delayed, and it was lost');
$delayed->append_conf('postgresql.conf', 'recovery_min_apply_delay = 0');
$delayed->reload;
my $readers = start_readers($delayed, may_fail => 1);
same_rows($primary, $delayed, 'when the delay is taken away');
stop_readers($readers);
is($delayed->safe_psql('postgres', $marks), '4|4', 'delayed standby: all marks');
is($delayed->safe_psql('postgres', q(SELECT count(*) FROM mark_mot m JOIN mark_heap USING (n) WHERE n IN (101, 102))), '2', 'and those of prepared transactions');

no_crash($primary, $delayed);
done_testing();
