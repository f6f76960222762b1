# A server that shuts down while checkpoints of the memory-optimized tables fail (a full disk; here
# it may not write there), and no slot keeps the WAL: PostgreSQL's last checkpoint would remove WAL
# that has the only copy of committed rows. The shutdown waits, and says what to do.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $waits = qr/mot checkpoint at redo \S+ failed: .*HINT: [^\n]*The shutdown waits for it.*in mode immediate/s;
my $node = new_primary('primary', conf => "wal_level = minimal\nmax_wal_senders = 0\nwal_keep_size = 0\nmin_wal_size = '32MB'\n");
my ($round, $seen) = (0, 0);

# Rows that are in no checkpoint of ours, and more WAL behind them than PostgreSQL keeps for itself.
# Returns what there is then.
sub write_and_fill
{
	my ($at) = @_;
	$at->safe_psql('postgres', 'CHECKPOINT');
	chmod 0500, $at->data_dir . '/mot' or die;
	$round++;
	for my $i (1 .. 4)
	{
		my $id = 1000 * $round + 5000 + $i;
		$at->safe_psql('postgres', "INSERT INTO $_ VALUES ($id, $round, 0, 'committed')") for qw(twin_heap twin_mot);
		$at->safe_psql('postgres', 'SELECT pg_switch_wal()');
	}
	$seen = -s $at->logfile;
	return digest($at);
}

sub order_stop
{
	my ($at) = @_;
	system_or_bail('pg_ctl', '-D', $at->data_dir, '-m', 'fast', '-W', 'stop');
	return;
}

# It waits, tries again, and says so each time.
sub waits_and_says_so
{
	my ($at, $what) = @_;
	$at->wait_for_log($waits, $seen);
	$at->wait_for_log(qr/The shutdown waits.*The shutdown waits/s, $seen);
	ok(-e $at->data_dir . '/postmaster.pid', "$what: the shutdown waits");
	return;
}

sub stops_by_itself
{
	my ($at, $what) = @_;
	my $pid_file = $at->data_dir . '/postmaster.pid';
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless -e $pid_file;
		usleep(100_000);
	}
	ok(!-e $pid_file, "$what: with room the server stops by itself");
	# The harness has to notice.
	$at->stop('fast', fail_ok => 1);
	return;
}

# Somebody who cannot wait for room.
my $digest = write_and_fill($node);
order_stop($node);
waits_and_says_so($node, 'without a slot');
$node->stop('immediate');
chmod 0700, $node->data_dir . '/mot' or die;
$node->start;
holds_all($node, $digest, 'after a stop in mode immediate');

# Room comes back.
$digest = write_and_fill($node);
order_stop($node);
waits_and_says_so($node, 'without a slot, again');
chmod 0700, $node->data_dir . '/mot' or die;
stops_by_itself($node, 'without a slot');
$node->start;
holds_all($node, $digest, 'after a shutdown that has waited');

# In a recovery, whose last checkpoint waits for ours.
$digest = write_and_fill($node);
$node->kill9;
wait_gone($node);
$seen = -s $node->logfile;
system('pg_ctl', '-D', $node->data_dir, '-l', $node->logfile, '-W', 'start');
$node->wait_for_log(qr/mot checkpoint at redo \S+ failed/, $seen);
order_stop($node);
waits_and_says_so($node, 'at the end of a recovery');
chmod 0700, $node->data_dir . '/mot' or die;
stops_by_itself($node, 'at the end of a recovery');
$node->start;
holds_all($node, $digest, 'after a recovery that was shut down');

# The worker alone is told to end while PostgreSQL's checkpoint waits for ours.
$digest = write_and_fill($node);
my $checkpoint = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ],
	'<', \undef, '>', \my $out, '2>&1');
$node->wait_for_log(qr/mot checkpoint at redo \S+ failed: .*PostgreSQL's checkpoints wait for it/s, $seen);
my $redo = $node->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()');
my ($worker, $failed) = split /\|/, $node->safe_psql('postgres', 'SELECT worker_pid, checkpoints_failed FROM mot.stat_checkpoint');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
$node->poll_query_until('postgres', "SELECT checkpoints_failed > $failed + 1 FROM mot.stat_checkpoint") or die 'not tried again';
is($node->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint'), $worker, 'a worker that alone is told to end stays while a checkpoint waits for ours');
is($node->safe_psql('postgres', 'SELECT redo_lsn FROM pg_control_checkpoint()'), $redo, 'and that has not completed');
chmod 0700, $node->data_dir . '/mot' or die;
$checkpoint->finish;
$node->safe_psql('postgres', 'CHECKPOINT');
is($node->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint'), $worker, 'nor does it leave between two, with nothing else to keep the WAL');
crash($node);
holds_all($node, $digest, 'after the worker was told to end');

# A slot whose WAL the server may take away is as good as none.
my $limited = new_primary('limited', conf => "max_slot_wal_keep_size = '16MB'\nwal_keep_size = 0\nmin_wal_size = '32MB'\nmax_wal_size = '4GB'\n");
$digest = write_and_fill($limited);
order_stop($limited);
waits_and_says_so($limited, 'with a limit for slots');
chmod 0700, $limited->data_dir . '/mot' or die;
stops_by_itself($limited, 'with a limit for slots');
$limited->start;
holds_all($limited, $digest, 'with a limit for slots');

# The same at the end of a recovery. The worker does not see that end: it is stopped itself while
# the server replays, when it holds the slot, and goes on when the last checkpoint of the recovery
# waits for it and the server is told to shut down.
for my $id (7001 .. 7004)
{
	$limited->safe_psql('postgres', "INSERT INTO $_ VALUES ($id, 7, 0, 'committed')") for qw(twin_heap twin_mot);
	$limited->safe_psql('postgres', 'SELECT pg_switch_wal()');
}
# Time to find the worker in.
$limited->safe_psql('postgres', 'CREATE TABLE much AS SELECT i, repeat(md5(i::text), 20) AS filler FROM generate_series(1, 150000) i');
$digest = digest($limited);
$limited->kill9;
wait_gone($limited);
$seen = -s $limited->logfile;
my $slot_file = $limited->data_dir . '/pg_replslot/mot/state';
my $slot_before = (stat $slot_file)[1];
system('pg_ctl', '-D', $limited->data_dir, '-l', $limited->logfile, '-W', '-o', '--cluster-name=limited', 'start');
my $stopped = stop_worker($limited, sub { my $now = (stat $slot_file)[1]; $now && $now != $slot_before });
ok(!$limited->log_contains('redo done at', $seen), 'the worker is stopped while the server replays');
$limited->wait_for_log(qr/checkpoint starting: end-of-recovery/, $seen);
order_stop($limited);
wait_told_to_end($stopped);
kill CONT => $stopped;
stops_by_itself($limited, 'with a limit for slots, at the end of a recovery');
$limited->start;
holds_all($limited, $digest, 'with a limit for slots, after a recovery that was shut down');

no_crash($node, $limited);
done_testing();

# Stops the checkpoint worker of a server that starts (SIGSTOP) as soon as it has come so far,
# `$has`, and sleeps between two turns: the end of the replay waits for the turn in which it takes
# its slot. Returns its process id.
sub stop_worker
{
	my ($at, $has) = @_;
	my $title = 'postgres: ' . $at->name . ': mot checkpointer';
	for (1 .. 1000 * $PostgreSQL::Test::Utils::timeout_default)
	{
		if ($has->())
		{
			for my $file (glob '/proc/[0-9]*/cmdline')
			{
				my ($pid) = $file =~ /(\d+)/;
				# Some end meanwhile. (epoll_wait and epoll_pwait of x86-64, epoll_pwait of ARM.)
				open(my $process, '<', $file) or next;
				next unless (readline($process) // '') =~ /^\Q$title/;
				open(my $call, '<', "/proc/$pid/syscall") or next;
				next unless (readline($call) // '') =~ /^(?:22|232|281) /;
				kill STOP => $pid;
				return $pid;
			}
		}
		usleep(1_000);
	}
	die 'there is no checkpoint worker';
}

# Waits until SIGTERM is there for a process that is stopped.
sub wait_told_to_end
{
	my ($pid) = @_;
	for (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my ($pending) = slurp_file("/proc/$pid/status") =~ /^ShdPnd:\s*(\w+)/m;
		return if hex($pending) & 1 << 14;
		usleep(10_000);
	}
	die 'the worker is not told to end';
}
