# A base backup of a standby that has just begun, whose checkpoint of memory-optimized tables is
# behind PostgreSQL's: it waits, or is refused with the way out; what comes out of it can always be
# restored.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# Leaves the standby stopped with PostgreSQL's redo position ahead of our checkpoint: nobody could
# read it when that moved.
sub fall_behind
{
	$standby->stop('fast');
	$standby->append_conf('postgresql.conf', "hot_standby = off\n");
	system_or_bail('pg_ctl', '-D', $standby->data_dir, '-l', $standby->logfile, '-W', 'start');
	$primary->safe_psql('postgres', q(
INSERT INTO twin_heap SELECT i, i, 0, repeat('x', 100) FROM generate_series(20000, 26000) i ON CONFLICT (id) DO UPDATE SET changes = twin_heap.changes + 1;
INSERT INTO twin_mot SELECT * FROM twin_heap WHERE id >= 20000 ON CONFLICT (id) DO UPDATE SET changes = excluded.changes;
CHECKPOINT));
	my $lsn = $primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
	$primary->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE replay_lsn >= '$lsn'::pg_lsn")
	  or die 'the standby does not follow';
	# It makes its restartpoint when it is shut down.
	system_or_bail('pg_ctl', '-D', $standby->data_dir, '-m', 'fast', 'stop');
	$standby->append_conf('postgresql.conf', "hot_standby = on\n");
	return;
}

# Restores a backup and compares.
sub restored
{
	my ($backup, $what) = @_;
	my $copy = new_standby($backup, $standby, $backup);
	same_rows($primary, $copy, $what);
	$copy->stop('fast');
	return;
}

# Slow, but not very: the backup waits for it.
fall_behind();
$standby->append_conf('postgresql.conf', "mot.checkpoint_bandwidth = '256kB'\n");
$standby->start;
my $behind = $standby->safe_psql('postgres',
	q(SELECT covered_lsn < (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint));
$standby->backup('waited');
is($behind, 't', 'our checkpoint was behind when the backup was asked for');
is( $standby->safe_psql('postgres', q(SELECT covered_lsn >= (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint)),
	't', 'and is not behind now');
restored('waited', 'from a backup that waited');

# So slow that it is refused; the session that calls pg_backup_start waits until it is cancelled.
fall_behind();
$standby->append_conf('postgresql.conf', "mot.checkpoint_bandwidth = '1kB'\nauthentication_timeout = 4s\n");
$standby->start;
command_fails_like(
	[ 'pg_basebackup', '-D', $primary->backup_dir . '/refused', '-h', $standby->host, '-p', $standby->port, '--checkpoint', 'fast', '--no-sync' ],
	qr/this standby's checkpoint of memory-optimized tables is behind.*HINT:  Try again/s, 'refused, with the way out');
# A connection for logical replication may say BASE_BACKUP as well.
command_fails_like([ 'psql', '-XAt', '-d', $standby->connstr('postgres') . ' replication=database', '-c', q(BASE_BACKUP (CHECKPOINT 'fast')) ],
	qr/this standby's checkpoint of memory-optimized tables is behind.*HINT:  Try again/s, 'refused to a connection with a database, too');
my ($code, undef, $error) = $standby->psql('postgres', q(SET statement_timeout = '300ms'; SELECT pg_backup_start('low', true)));
like($error, qr/statement timeout/, 'pg_backup_start waits, interruptibly');
# A slow machine has its time from here on, a backup that waits for the next checkpoint included.
$standby->append_conf('postgresql.conf', "authentication_timeout = 60s\n");
$standby->reload;
$standby->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM mot.stat_checkpoint');
$standby->poll_query_until('postgres', q(SELECT covered_lsn >= (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint))
  or die 'no checkpoint';
$standby->backup('later');
restored('later', 'from a backup after the refusal');

# Its checkpoints fail when it has long been running (here: it may not write into their directory),
# and its restartpoints go on.
my $behind_again = q(SELECT covered_lsn < (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint);
my @backup = ('pg_basebackup', '-h', $standby->host, '-p', $standby->port, '--checkpoint', 'fast', '--no-sync');
$standby->append_conf('postgresql.conf', "mot.checkpoint_bandwidth = 0\nauthentication_timeout = 4s\n");
$standby->reload;
chmod 0500, $standby->data_dir . '/mot' or die;
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1; CHECKPOINT');
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
is($standby->safe_psql('postgres', $behind_again), 't', 'checkpoints fail: ours is behind again');
command_fails_like([ @backup, '-D', $primary->backup_dir . '/failing' ],
	qr/this standby's checkpoint of memory-optimized tables is behind/, 'refused while checkpoints fail');
($code, undef, $error) = $standby->psql('postgres', q(SET statement_timeout = '300ms'; SELECT pg_backup_start('low', true)));
like($error, qr/statement timeout/, 'and pg_backup_start waits');
($code, undef, $error) = $standby->psql('postgres', q(SELECT pg_terminate_backend(worker_pid, 60000) FROM mot.stat_checkpoint;
	SET statement_timeout = '300ms'; SELECT pg_backup_start('low', true)));
like($error, qr/statement timeout/, 'also when the worker is gone');
chmod 0700, $standby->data_dir . '/mot' or die;
$standby->append_conf('postgresql.conf', "authentication_timeout = 60s\n");
$standby->reload;
$standby->poll_query_until('postgres', $behind_again, 'f') or die 'no checkpoint';
$standby->backup('good_again');
restored('good_again', 'from a backup after checkpoints that failed');

# Connects a WAL sender, which has said something when this returns.
sub sender
{
	my ($replication, $first) = @_;
	my %sender = (in => "$first;\n", out => '');
	$sender{run} = IPC::Run::start([ 'psql', '-XAt', '-d', $standby->connstr('postgres') . " replication=$replication" ], '<', \$sender{in}, '>',
		\$sender{out}, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$sender{run}->pump until $sender{out} =~ /\n/;
	return \%sender;
}

# It says something more, and ends.
sub ended
{
	my ($sender, $last) = @_;
	$sender->{in} = "$last;\n\\q\n";
	$sender->{run}->finish;
	return $sender->{out};
}

# They fail while WAL senders idle that were let in before. A restartpoint passes by, and none of
# them begins a backup there; who copies a table for a subscription goes on.
my @idle = map { sender($_, 'IDENTIFY_SYSTEM') } 'true', 'database';
my $copies = sender('database', 'BEGIN READ ONLY; SELECT 1');
my $log = -s $standby->logfile;
chmod 0500, $standby->data_dir . '/mot' or die;
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1; CHECKPOINT');
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
is($standby->safe_psql('postgres', $behind_again), 't', 'a restartpoint passes by while senders idle');
for my $sender (@idle)
{
	my $said = ended($sender, q(BASE_BACKUP (CHECKPOINT 'fast', LABEL 'slipped')));
	# Not is or like: they would show a backup's bytes.
	ok($said !~ qr/PGDATA|base\/1|backup_label/, 'no backup begins there');
	ok($said =~ qr/terminating connection|server closed the connection/, 'but the connection is ended');
}
like(ended($copies, 'SELECT 1 + 1'), qr/^2$/m, 'a transaction of a subscriber goes on');
like(slurp_file($standby->logfile, $log), qr/mot has ended the WAL sender/, 'and the log says so');
chmod 0700, $standby->data_dir . '/mot' or die;
$standby->poll_query_until('postgres', $behind_again, 'f') or die 'no checkpoint';

# An error of PostgreSQL's in our checkpoint gives up the lock at which restartpoints wait.
my $asks = sender('true', 'IDENTIFY_SYSTEM');
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1; CHECKPOINT');
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', q(SELECT mot.fail_at('checkpoint-after-redo', 1000)));
$log = -s $standby->logfile;
my $said = ended($asks, q(BASE_BACKUP (CHECKPOINT 'fast')));
# The sender is ended before the log says why.
$standby->wait_for_log(qr/failed at checkpoint-after-redo/, $log);
ok($said !~ qr/PGDATA|base\/1|backup_label/, 'no backup begins at a restartpoint that went on for an error');
ok($said =~ qr/terminating connection|server closed the connection/, 'its connection is ended');
$standby->safe_psql('postgres', q(SELECT mot.resume('checkpoint-after-redo')));
$standby->poll_query_until('postgres', $behind_again, 'f') or die 'no checkpoint';
$standby->backup('after_errors');
restored('after_errors', 'from a backup after all of these');

# They fail when a WAL sender has been let in: the restartpoint that its backup begins with waits.
# Returns the sender.
sub wait_with_backup
{
	my $sender = sender('true', 'IDENTIFY_SYSTEM');
	chmod 0500, $standby->data_dir . '/mot' or die;
	$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1; CHECKPOINT');
	wait_replayed($primary, $standby);
	my $failed = $standby->safe_psql('postgres', 'SELECT checkpoints_failed FROM mot.stat_checkpoint');
	$sender->{in} = "BASE_BACKUP (CHECKPOINT 'fast');\n";
	$sender->{run}->pump_nb;
	$standby->poll_query_until('postgres', "SELECT checkpoints_failed > $failed + 1 FROM mot.stat_checkpoint") or die 'nothing was tried';
	is($standby->safe_psql('postgres', $behind_again), 'f', 'no restartpoint passes by ours while a base backup may begin with it');
	return $sender;
}

my $sender = wait_with_backup();
chmod 0700, $standby->data_dir . '/mot' or die;
$sender->{in} = "\\q\n";
$sender->{run}->finish;
like($sender->{out}, qr/PGDATA|base\/1|backup_label/, 'and the backup goes on when there is room');

# The standby shuts down meanwhile. A session that has read rows makes a slot: it waits for the
# restartpoint, where no signal ends it, and the worker waits for the session.
$sender = wait_with_backup();
my ($in, $out) = ("SELECT count(*) FROM twin_mot;\nSELECT pg_create_physical_replication_slot('behind_it', false, true);\n", '');
my $maker = IPC::Run::start([ 'psql', '-XAt', '-d', $standby->connstr('postgres') ], '<', \$in, '>', \$out, '2>&1',
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$maker->pump until $in eq '';
$standby->poll_query_until('postgres', q(SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'ReplicationSlotAllocation'))
  or die 'nobody waits to make a slot';
my $is_stopped = $standby->stop('fast', fail_ok => 1);
ok($is_stopped, 'the standby shuts down beside a backup and a session that wait');
$standby->stop('immediate') unless $is_stopped;
chmod 0700, $standby->data_dir . '/mot' or die;
# Both have lost their server.
eval { $_->finish } for $maker, $sender->{run};
ok($sender->{out} !~ qr/PGDATA|base\/1|backup_label/, 'and no backup has begun');

# Promoted meanwhile: a primary's own checkpoint waits for ours (023: also if ours fails).
fall_behind();
$standby->append_conf('postgresql.conf', "mot.checkpoint_bandwidth = '256kB'\n");
$standby->start;
promote($standby);
$standby->backup('promoted');
my $copy = new_standby('of_promoted', $standby, 'promoted');
same_rows($standby, $copy, 'from a backup of the promoted standby');

no_crash($primary, $standby);
done_testing();
