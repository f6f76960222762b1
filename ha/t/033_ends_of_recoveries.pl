# Recoveries that end in unusual ways: told to stop while the worker holds the restartpoints' gate,
# without any worker, and behind a checkpoint that is older than one that the slot knows of.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $next = 20_000;

# Rows in both tables, and a new file of the WAL behind each.
sub write_rows
{
	my ($at, $count) = @_;
	for my $id ($next + 1 .. $next + $count)
	{
		$at->safe_psql('postgres', "INSERT INTO $_ VALUES ($id, 1, 0, 'committed')") for qw(twin_heap twin_mot);
		$at->safe_psql('postgres', 'SELECT pg_switch_wal()');
	}
	$next += $count;
	return digest($at);
}

# A slot with a limit is given up by a worker that is told to end while PostgreSQL's last checkpoint
# of the recovery is under way: not with its lock, for which that checkpoint would wait for ever.
# The worker is kept in the checkpoint before (it may not write) until the stop is ordered.
my $limited = new_primary('limited', conf => "wal_keep_size = 0\nmin_wal_size = '32MB'\nmax_wal_size = '4GB'\n");
$limited->safe_psql('postgres', 'CHECKPOINT');
my $digest = write_rows($limited, 2);
chmod 0500, $limited->data_dir . '/mot' or die;
crash($limited);
# Something to recover: from 16 on a session leaves nothing by itself.
$limited->safe_psql('postgres', 'SELECT pg_switch_wal()');
$limited->append_conf('postgresql.conf', "max_slot_wal_keep_size = '1GB'\n");
$limited->kill9;
wait_gone($limited);
my $seen = -s $limited->logfile;
system('pg_ctl', '-D', $limited->data_dir, '-l', $limited->logfile, '-W', 'start');
$limited->wait_for_log(qr/mot checkpoint at redo \S+ failed/, $seen);
$limited->wait_for_log(qr/checkpoint starting: end-of-recovery/, $seen);
system_or_bail('pg_ctl', '-D', $limited->data_dir, '-m', 'fast', '-W', 'stop');
chmod 0700, $limited->data_dir . '/mot' or die;
my $pid_file = $limited->data_dir . '/postmaster.pid';
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last unless -e $pid_file;
	usleep(100_000);
}
ok(!-e $pid_file, 'a stop at the end of a recovery with a limit for slots');
$limited->stop(-e $pid_file ? 'immediate' : 'fast', fail_ok => 1);
$limited->start;
holds_all($limited, $digest, 'after a stop at the end of a recovery with a limit for slots');

# Files of before are put in place of the checkpoint. Their last one says that nothing was logged
# after it, which was true once; the WAL that would tell is gone. The slot knows of a newer one.
$limited->append_conf('postgresql.conf', "max_slot_wal_keep_size = -1\n");
$limited->restart;
$limited->stop('fast');
my ($kept, $now) = ($limited->data_dir . '/mot', $limited->basedir . '/mot-now');
my $old = $limited->basedir . '/mot-old';
system_or_bail('cp', '-a', $kept, $old);
$limited->start;
$digest = write_rows($limited, 4);
$limited->safe_psql('postgres', 'CHECKPOINT') for 1 .. 2;
$limited->safe_psql('postgres', 'SELECT pg_switch_wal(); CHECKPOINT');
$limited->stop('fast');
rename $kept, $now or die;
system_or_bail('cp', '-a', $old, $kept);
$limited->start;
my (undef, undef, $error) = $limited->psql('postgres', q(SET statement_timeout = '60s'; SELECT count(*) FROM twin_mot));
like($error, qr/is needed and cannot be read/, 'files of before are not taken for the newest');
$limited->stop('fast');
system_or_bail('rm', '-r', $kept);
rename $now, $kept or die;
$limited->start;
holds_all($limited, $digest, 'with its own files back');

# Recovery to a point in time without a worker: what single-user mode writes at its end lies on the
# timeline that ends there.
my $primary = new_primary('primary', archiving => 1);
$primary->backup('backup');
$digest = write_rows($primary, 2);
wait_archived($primary);
my $alone = PostgreSQL::Test::Cluster->new('alone');
$alone->init_from_backup($primary, 'backup', has_restoring => 1, standby => 0);
$alone->append_conf('postgresql.conf', "wal_keep_size = 0\nmin_wal_size = '32MB'\nhot_standby = off\n");
my ($input, $output) = ("SELECT 1\n", '');
IPC::Run::run([ $alone->installed_command('postgres'), '--single', '-D', $alone->data_dir, 'postgres' ], '<', \$input, '>', \$output, '2>&1');
unlike($output, qr/FATAL|PANIC/, 'recovery in single-user mode') or diag($output);
$alone->start;
holds_all($alone, $digest, 'after a recovery in single-user mode');

no_crash($limited, $primary, $alone);
done_testing();
