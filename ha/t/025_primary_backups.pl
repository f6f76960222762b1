# Base backups of a primary whose checkpoints of memory-optimized tables fail: they wait, or fail
# and say so; what comes out of one can be restored.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_primary('primary');
my $directory = $primary->data_dir . '/mot';
my $is_behind = q(SELECT covered_lsn < (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint);
my $is_waiting = q(SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'backup');

sub change
{
	$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1');
	return;
}

# Begins a backup that goes on by itself.
sub begin_backup
{
	my ($name) = @_;
	my $run = { name => $name, out => '', err => '' };
	$run->{handle} = IPC::Run::start(
		[ $primary->installed_command('pg_basebackup'), '-D', $primary->backup_dir . "/$name", '-h', $primary->host, '-p', $primary->port,
			'-X', 'stream', '--checkpoint', 'fast', '--no-sync' ],
		'>', \$run->{out}, '2>', \$run->{err}, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return $run;
}

sub ended
{
	my ($run) = @_;
	$run->{handle}->finish;
	return $run->{handle}->result(0) == 0;
}

# By itself: its primary may be gone.
sub restored
{
	my ($backup, $what, $digest) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($backup);
	$copy->init_from_backup($primary, $backup);
	$copy->start;
	is(digest($copy), $digest, "$what: the restored rows");
	agrees($copy, $what);
	sound($copy, $what);
	no_crash($copy);
	$copy->stop('fast');
	return;
}

# Waits until the backup stands at the gate, and our checkpoint has been tried for it.
sub stands
{
	my ($run) = @_;
	while ($primary->safe_psql('postgres', $is_waiting) ne 't')
	{
		$run->{handle}->pump_nb;
		return 0 if !$run->{handle}->pumpable;
		usleep(10_000);
	}
	my $failed = $primary->safe_psql('postgres', 'SELECT checkpoints_failed FROM mot.stat_checkpoint');
	$primary->poll_query_until('postgres', "SELECT checkpoints_failed > $failed FROM mot.stat_checkpoint") or die 'nothing was tried';
	$run->{handle}->pump_nb;
	return $run->{handle}->pumpable && !$run->{err};
}

# A checkpoint passes by ours, the backup's does not.
chmod 0500, $directory or die;
change();
$primary->safe_psql('postgres', 'CHECKPOINT');
is($primary->safe_psql('postgres', $is_behind), 't', 'checkpoints fail: ours is behind');
my $digest = digest($primary);
my $run = begin_backup('waited');
ok(stands($run), 'a base backup waits');
like(slurp_file($primary->logfile), qr/HINT:.*a base backup is under way/, 'and the log says so');
my (undef, undef, $error) = $primary->psql('postgres', q(SET statement_timeout = '300ms'; SELECT pg_backup_start('low', true)));
like($error, qr/statement timeout/, 'pg_backup_start waits, interruptibly');
# Told to end, the worker stays with the backup.
$primary->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM mot.stat_checkpoint');
ok(stands($run), 'it waits on when the worker is told to end');
chmod 0700, $directory or die;
ok(ended($run), 'it goes on when there is room') or diag($run->{err});
restored('waited', 'from a backup that waited', $digest);

# A session that asks for a backup, and waits.
my ($session, $in, $out);

sub begin_copy
{
	($in, $out) = ("SELECT 'begun' FROM (SELECT pg_backup_start('low', true)) AS start;\n", '');
	$session = IPC::Run::start([ $primary->installed_command('psql'), '-XAt', '-d', $primary->connstr('postgres') ],
		'<', \$in, '>', \$out, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$session->pump_nb;
	$primary->poll_query_until('postgres',
		q(SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT .begun' AND state = 'active')) or die 'no session';
	return;
}

# Where slots have a limit the worker leaves when it is told to: who waits for it is told that
# nothing comes out of it.
chmod 0500, $directory or die;
$primary->append_conf('postgresql.conf', "max_slot_wal_keep_size = 1GB\n");
$primary->reload;
change();
$run = begin_backup('left');
ok(stands($run), 'a base backup waits where slots have a limit');
begin_copy();
$primary->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM mot.stat_checkpoint');
ok(!ended($run), 'it fails when the worker leaves');
$session->pump until $out =~ /HINT:.*\n/;
like($out, qr/ERROR: .*begun without a complete checkpoint/, 'and so does pg_backup_start');
$in = "\\q\n";
$session->finish;
$primary->append_conf('postgresql.conf', "max_slot_wal_keep_size = -1\n");
$primary->reload;
chmod 0700, $directory or die;
$primary->poll_query_until('postgres', $is_behind, 'f') or die 'no checkpoint';

# A file copy, begun when checkpoints fail: it waits, too.
chmod 0500, $directory or die;
change();
$digest = digest($primary);
begin_copy();
my $failed = $primary->safe_psql('postgres', 'SELECT checkpoints_failed FROM mot.stat_checkpoint');
$primary->poll_query_until('postgres', "SELECT checkpoints_failed > $failed + 1 FROM mot.stat_checkpoint") or die 'nothing was tried';
$session->pump_nb;
is($out, '', 'a backup with pg_backup_start has not begun');
chmod 0700, $directory or die;
$session->pump until $out =~ /\n/;
is($out, "begun\n", 'and begins when there is room');
my $to = $primary->backup_dir . '/copied';
system_or_bail('cp', '-r', $primary->data_dir, $to);
unlink "$to/postmaster.pid", "$to/postmaster.opts";
system_or_bail('rm', '-rf', "$to/pg_wal", "$to/pg_replslot");
mkdir "$to/$_", 0700 for qw(pg_wal pg_replslot);
$out = '';
$in = "SELECT labelfile FROM pg_backup_stop(false);\nSELECT 'stopped';\n\\q\n";
$session->finish;
append_to_file("$to/backup_label", $out =~ s/\n+stopped\n$/\n/r);
system_or_bail('cp', '-r', $primary->data_dir . '/pg_wal', $to);
restored('copied', 'from a copy of the files', $digest);

# The tables have not changed, and the server shuts down with a backup that waits.
chmod 0500, $directory or die;
change();
$run = begin_backup('stopped');
ok(stands($run), 'another one waits');
$primary->stop('fast');
ok(!ended($run), 'the server shuts down, and it fails');
chmod 0700, $directory or die;
$primary->start;
agrees($primary, 'after the shutdown');

# The tables cannot be loaded: nothing would come out of a backup, and nobody waits for ever.
$primary->stop('fast');
my ($newest) = (sort { $b cmp $a } glob "$directory/manifest-*");
rename $newest, $primary->basedir . '/manifest' or die;
append_to_file($newest, 'damaged');
$primary->start;
(undef, undef, $error) = $primary->psql('postgres', q(SET statement_timeout = '60s'; SELECT pg_backup_start('low', true)));
like($error, qr/could not be loaded/, 'pg_backup_start says that the tables could not be loaded');
is($primary->psql('postgres', 'CREATE DATABASE rescue TEMPLATE template0'), 0, 'a database to restore into can be made');
is($primary->safe_psql('rescue', 'CREATE TABLE heap AS SELECT 7 AS a; SELECT a FROM heap'), '7', 'and used');
is($primary->safe_psql('postgres', q(SELECT active FROM pg_replication_slots WHERE slot_name = 'mot')), 't',
	'the slot is held all the same: what is idle for long may be taken away (18)');
$run = begin_backup('failed');
ok(!ended($run), 'a base backup fails');
like(slurp_file($primary->logfile), qr/WARNING:.*mot has ended the WAL sender/, 'and the log says why');
$primary->stop('fast');
unlink $newest;
rename $primary->basedir . '/manifest', $newest or die;
$primary->start;
$primary->safe_psql('postgres', 'DROP DATABASE rescue');
$digest = digest($primary);
$primary->backup('last');
restored('last', 'from a backup of the repaired server', $digest);

no_crash($primary);
done_testing();
