# max_slot_wal_keep_size takes the WAL of a slot away: of mot's own, on a primary and on a standby
# that can be read, and of a standby's. A server that runs loses nothing and makes itself a new
# slot; a start that lacks WAL stops and says which; the standby comes back by the archive.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Checkpoints when they are asked for, and no WAL files but those that must be.
my $limit = "max_slot_wal_keep_size = '16MB'\nmin_wal_size = '32MB'\nmax_wal_size = '4GB'\nwal_keep_size = 0\n";
my $primary = new_primary('primary', archiving => 1, conf => $limit);
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1, has_restoring => 1);
$standby->append_conf('postgresql.conf', "archive_mode = off\n");
$standby->start;
my $round = 0;

# Rows of both kinds, and more WAL behind them than a slot may keep.
sub write_much
{
	for (1 .. 4)
	{
		$round++;
		$primary->safe_psql('postgres', qq(
BEGIN; INSERT INTO twin_heap SELECT i, $round, 0, 'much' FROM generate_series(${round}00000, ${round}00200) i;
INSERT INTO twin_mot SELECT i, $round, 0, 'much' FROM generate_series(${round}00000, ${round}00200) i; COMMIT;
SELECT pg_switch_wal()));
	}
	return;
}

# A checkpoint (or restartpoint) that takes so long that more WAL is written meanwhile than a slot
# may keep: mot's slot stands where that checkpoint began, and stays.
sub slow_checkpoint
{
	my ($node) = @_;
	my $slot = q(SELECT count(*) = 1 FROM pg_replication_slots, mot.stat_checkpoint WHERE slot_name = 'mot' AND active_pid = worker_pid AND wal_status <> 'lost');
	my $worker = $node->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint');
	my $holder = $node->background_psql('postgres');
	$holder->query_safe(q(SELECT mot.pause_at('checkpoint-after-redo')));
	my $checkpoint = start_checkpoint($node);
	$node->safe_psql('postgres', q(SET statement_timeout = '60s'; SELECT mot.wait_until_paused('checkpoint-after-redo')));
	write_much();
	wait_replayed($primary, $node) if $node != $primary;
	$holder->query_safe(q(SELECT mot.resume('checkpoint-after-redo')));
	$holder->quit;
	$checkpoint->finish;
	is($node->safe_psql('postgres', $slot), 't', $node->name . ': a slow checkpoint does not lose the slot');
	is($node->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint'), $worker, $node->name . ': nor the worker that holds it');
	return;
}

# Checkpoints fail (the server may not write them): nothing surely keeps the WAL, so PostgreSQL's
# wait, and statements, replay and readers go on. Then the worker is ended: the checkpoint completes
# and takes the slot's WAL away, which ours would have needed.
sub lose_slot
{
	my ($node) = @_;
	my $name = $node->name;
	chmod 0500, $node->data_dir . '/mot' or die;
	write_much();
	$primary->safe_psql('postgres', 'CHECKPOINT') if $node != $primary;
	wait_replayed($primary, $standby);
	my $redo = $node->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()');
	my $seen = -s $node->logfile;
	my $checkpoint = start_checkpoint($node);
	$node->wait_for_log(qr/mot checkpoint at redo \S+ failed: .*"mot\/.*max_slot_wal_keep_size is not -1/s, $seen);
	my $readers = start_readers($node);
	write_much();
	wait_replayed($primary, $standby);
	stop_readers($readers);
	ok($checkpoint->pumpable, "$name: a checkpoint waits while ours fails");
	is($node->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()'), $redo, "$name: and has not completed");
	# Nothing is taken away before it is in the archive.
	wait_archived($primary);
	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM mot.stat_checkpoint');
	$checkpoint->finish;
	ok($node->log_contains('invalidating (obsolete replication )?slot "mot"', $seen), "$name: the WAL of the slot of a worker that was ended is taken away");
	return;
}

for my $node ($primary, $standby)
{
	# A restartpoint needs a checkpoint.
	$primary->safe_psql('postgres', 'CHECKPOINT') if $node == $standby;
	wait_replayed($primary, $standby);
	slow_checkpoint($node);
	lose_slot($node);
	# While the server lives nothing is lost: ours is tried again, and has a slot again.
	chmod 0700, $node->data_dir . '/mot' or die;
	$node->poll_query_until('postgres', q(SELECT s.covered_lsn >= c.redo_lsn AND wal_status <> 'lost' AND active_pid = worker_pid
		FROM mot.stat_checkpoint s, pg_control_checkpoint() c, pg_replication_slots WHERE slot_name = 'mot')) or die 'no checkpoint, or no slot';
	crash($node);
	same_rows($primary, $standby, "after the slot of " . $node->name . ' was lost, and the server after the next checkpoint');
}

# The server is lost before that: the start lacks the WAL, says so, and has it from the archive.
lose_slot($primary);
my $digest = digest($primary);
$primary->kill9;
wait_gone($primary);
chmod 0700, $primary->data_dir . '/mot' or die;
my $seen = -s $primary->logfile;
is($primary->start(fail_ok => 1), 0, 'a server that lacks WAL does not start');
like(slurp_file($primary->logfile, $seen), qr/the WAL from [0-9A-F\/]+ to [0-9A-F\/]+ is needed and cannot be read/, 'and says what it needs');
system_or_bail('sh', '-c', 'cp -n ' . $primary->archive_dir . '/0000* ' . $primary->data_dir . '/pg_wal/');
$primary->start;
is(digest($primary), $digest, 'with its WAL back from the archive everything is there');
same_rows($primary, $standby, 'with the WAL back from the archive');

# A standby's own shutdown is a restartpoint that waits for nobody: with the limit it takes the WAL
# behind our last checkpoint away. The next start says so.
write_much();
$primary->safe_psql('postgres', 'CHECKPOINT; SELECT pg_switch_wal()');
wait_replayed($primary, $standby);
$standby->stop('fast');
$seen = -s $standby->logfile;
is($standby->start(fail_ok => 1), 0, 'a standby that lost its WAL at its shutdown does not start');
like(slurp_file($standby->logfile, $seen), qr/is needed and cannot be read: .*max_slot_wal_keep_size/, 'and names the setting');
wait_archived($primary);
system_or_bail('sh', '-c', 'cp -n ' . $primary->archive_dir . '/0000* ' . $standby->data_dir . '/pg_wal/');
$standby->start;
same_rows($primary, $standby, 'with its WAL back from the archive');

# The slot of a standby that is down: the primary goes on, nothing fills up; the standby comes back
# by the archive, and streams again.
$primary->safe_psql('postgres', q(SELECT pg_create_physical_replication_slot('of_standby', true)));
$standby->append_conf('postgresql.conf', "primary_slot_name = 'of_standby'\n");
$standby->reload;
$primary->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'of_standby' AND active)) or die 'does not stream';
$standby->safe_psql('postgres', 'CHECKPOINT');
$standby->stop('fast');
write_much();
$primary->safe_psql('postgres', 'CHECKPOINT');
is($primary->safe_psql('postgres', q(SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'of_standby')), 'lost', 'the slot of a standby that is down is lost');
agrees($primary, "when a standby's slot is lost");
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
$standby->start;
same_rows($primary, $standby, 'that comes back by the archive');
$primary->safe_psql('postgres', q(SELECT pg_create_physical_replication_slot('another', true)));
$standby->append_conf('postgresql.conf', "primary_slot_name = 'another'\n");
$standby->reload;
my $load = start_load($primary);
$primary->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'another' AND active)) or die 'does not stream';
stop_load($load);
same_rows($primary, $standby, 'that streams again');

no_crash($primary, $standby);
done_testing();

# CHECKPOINT, not waited for.
sub start_checkpoint
{
	my ($node) = @_;
	return IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ],
		'<', \undef, '>', \my $out, '2>&1');
}
