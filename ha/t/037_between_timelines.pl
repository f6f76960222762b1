# A recovery has ended, and taken out what had not committed there; before it chooses its timeline
# it is lost, and told to go on. What was taken out commits behind that point: no checkpoint may be
# without it.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = new_primary('primary', archiving => 1);
$primary->backup('base');
# Its checkpoint is behind PostgreSQL's redo position when it is started again: a checkpoint is due
# as soon as one may be written.
my $node = new_standby('node', $primary, 'base', conf => "hot_standby = off\n");
my $first = redo_of($node);
$primary->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1; CHECKPOINT');
$primary->wait_for_catchup($node, 'replay', $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()'));
$node->stop('fast');
isnt(redo_of($node), $first, 'the redo position has moved on');

# Its records, the last of which is that of its commit, behind which the recovery does not go at
# first.
my $xid = $primary->safe_psql('postgres', q(
BEGIN;
CREATE TABLE late (id int PRIMARY KEY) USING mot;
INSERT INTO late SELECT generate_series(1, 100);
UPDATE twin_heap SET k = k + 1 WHERE id % 2 = 0;
UPDATE twin_mot SET k = k + 1 WHERE id % 2 = 0;
SELECT pg_current_xact_id()::xid;
COMMIT;
));
wait_archived($primary);

# Asked for the next timeline it waits as long as there is the file.
my ($stays, $asked) = map { $node->basedir . "/$_" } qw(stays asked);
append_to_file($stays, '');
my $restore = $node->basedir . '/restore.sh';
append_to_file($restore, <<"EOT");
if [ "\$1" = 00000002.history ]; then
  touch '$asked'
  while [ -e '$stays' ]; do sleep 0.1; done
  exit 1
fi
cp '${\$primary->archive_dir}'/"\$1" "\$2"
EOT
unlink $node->data_dir . '/standby.signal';
append_to_file($node->data_dir . '/recovery.signal', '');
$node->append_conf('postgresql.conf', <<"EOT");
primary_conninfo = ''
restore_command = 'sh $restore "%f" "%p"'
recovery_target_timeline = current
recovery_target_xid = '$xid'
recovery_target_inclusive = off
recovery_target_action = promote
EOT
my $log_before = -s $node->logfile;
system('pg_ctl', '-D', $node->data_dir, '-l', $node->logfile, '-W', 'start');
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default) { last if -e $asked; usleep(100_000) }
ok(-e $asked, 'the recovery has ended, and has no timeline');
# Time for a checkpoint that would be wrong.
for (1 .. 20) { last if slurp_file($node->logfile, $log_before) =~ /mot checkpoint complete/; usleep(100_000) }
my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
my $startup = process($node, 'startup');
kill 'KILL', $postmaster, $startup;
unlink $stays;
wait_gone($node);
ok(-e $node->data_dir . '/recovery.signal', 'it was lost before it had one');

$node->append_conf('postgresql.conf', "recovery_target_xid = ''\n");
$node->start;
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'does not end recovery';
is($node->safe_psql('postgres', 'SELECT count(*) FROM late'), '100', 'the table that committed behind the first end');
is(digest($node), digest($primary), 'all rows');
agrees($node, 'recovered behind the first end');
sound($node, 'recovered behind the first end', @Ledger::TABLES, 'late');
no_crash($node, $primary);
done_testing();
