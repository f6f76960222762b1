# A standby replays the cutting off of the commit log while it writes a checkpoint, behind the walk
# over rows whose transactions it had not judged yet: the checkpoint must not say of them that they
# are open.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $file_end = 1 << 20;
my $primary = new_primary('primary', next_xid => $file_end - 500, conf => "autovacuum = off\n");
my ($code) = $primary->psql('postgres', 'SELECT mot.pause_points()');
plan skip_all => 'no pause points in this build' if $code != 0;
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# Nobody judges there what is replayed from here on.
my $reclaimer = process($standby, 'mot reclaimer');
kill 'STOP', $reclaimer;
$primary->safe_psql('postgres', qq(
INSERT INTO $_ SELECT 5000 + i, i, 0, 'committed' FROM generate_series(1, 10) i;
BEGIN; UPDATE $_ SET k = k + 1, changes = changes + 1 WHERE id % 7 = 0; SAVEPOINT a; DELETE FROM $_ WHERE id % 11 = 0; ROLLBACK TO a; COMMIT;
)) for qw(twin_heap twin_mot);
my $digest = digest($primary);
# Its redo position lies behind their ends.
$primary->safe_psql('postgres', 'CHECKPOINT');
wait_replayed($primary, $standby);
my $holder = $standby->background_psql('postgres');
$holder->query_safe("SELECT mot.pause_at('checkpoint-before-outcomes')");
my $checkpoint = IPC::Run::start([ $standby->installed_command('psql'), '-XAt', '-d', $standby->connstr('postgres'), '-c', 'CHECKPOINT' ],
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$standby->safe_psql('postgres', "SELECT mot.wait_until_paused('checkpoint-before-outcomes')");

cut_commit_log($primary);
wait_replayed($primary, $standby);
ok(!-e $standby->data_dir . '/pg_xact/0000', 'the commit log of the standby is cut off');
$holder->query_safe("SELECT mot.resume('checkpoint-before-outcomes')");
$checkpoint->finish;
$holder->quit;
$standby->poll_query_until('postgres', q(SELECT covered_lsn >= (SELECT redo_lsn FROM pg_control_checkpoint()) FROM mot.stat_checkpoint))
  or die 'no checkpoint';
kill 'CONT', $reclaimer;
crash($standby);
wait_replayed($primary, $standby);
is(digest($standby), $digest, 'all rows after a crash');
agrees($standby, 'after a crash');
sound($standby, 'after a crash');
no_crash($primary, $standby);
done_testing();
