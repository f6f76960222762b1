# A standby that begins where a clean shutdown ended can be read before it has a record to replay:
# its tables must be there then, and all the same when records come, when it is promoted without
# any, and when it is lost.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');
$primary->safe_psql('postgres', q(BEGIN; UPDATE account_heap SET balance = balance - 7 WHERE id = 3; UPDATE account_mot SET balance = balance + 7 WHERE id = 3;
	COMMIT; DELETE FROM twin_heap WHERE k = 4; DELETE FROM twin_mot WHERE k = 4));
my $digest = digest($primary);
$primary->stop('fast');
$primary->backup_fs_cold('cold');

# Statements that do not wait for a record; the limit only ends a test that fails.
sub is_readable
{
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', q(SET statement_timeout = '60s'; SELECT * FROM digest)), $digest, $node->name . ": read $what");
	is($node->safe_psql('postgres', 'SELECT state, records_replayed FROM mot.stat_recovery'), 'replaying|0', "$what: there was nothing to replay");
	agrees($node, $what);
	sound($node, $what);
	return;
}

# Its primary is down.
my $standby = new_standby('standby', $primary, 'cold');
is_readable($standby, 'while the primary is down');
$standby->restart;
is_readable($standby, 'after a restart');
crash($standby);
is_readable($standby, 'after a crash');
my ($code, undef, $error) = $standby->psql('postgres', 'UPDATE account_mot SET balance = 0');
like($error, qr/read-only transaction/, 'and not written');

# A base backup of it.
my $copied = PostgreSQL::Test::Cluster->new('copied');
$standby->backup('of_idle');
$copied->init_from_backup($standby, 'of_idle', has_streaming => 1);
$copied->start;
is_readable($copied, 'from a backup of the idle standby');

# Promoted without a record, with a session that has read before and writes at once.
my $reader = $copied->background_psql('postgres');
$reader->query_safe('SELECT count(*) FROM twin_mot');
$copied->promote;
$copied->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'not promoted';
$reader->query_safe(q(BEGIN; INSERT INTO twin_heap VALUES (77777, 1, 0, 'promoted'); INSERT INTO twin_mot VALUES (77777, 1, 0, 'promoted'); COMMIT));
$reader->quit;
is($copied->safe_psql('postgres', 'SELECT state FROM mot.stat_recovery'), 'ready', 'promoted without a record');
agrees($copied, 'promoted');
sound($copied, 'promoted');
my $promoted = digest($copied);
crash($copied);
is(digest($copied), $promoted, 'promoted, and lost at once');
$copied->restart;
is(digest($copied), $promoted, 'promoted, lost, and restarted');
sound($copied, 'promoted, lost, and restarted');

# Its worker is told to end, and stays, since there is no slot that would keep the WAL. Promoted
# without a record, it finishes for those who write.
my $told = PostgreSQL::Test::Cluster->new('told');
$told->init_from_backup($standby, 'of_idle', has_streaming => 1);
$told->append_conf('postgresql.conf', "max_replication_slots = 0\n");
$told->start;
is_readable($told, 'without slots');
my $worker = $told->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint');
is($told->safe_psql('postgres', "SELECT pg_terminate_backend($worker)"), 't', 'its worker is told to end');
promote($told);
($code, undef, $error) = $told->psql('postgres', q(SET statement_timeout = '60s';
	BEGIN; INSERT INTO twin_heap VALUES (77778, 1, 0, 'told'); INSERT INTO twin_mot VALUES (77778, 1, 0, 'told'); COMMIT));
is($error, '', 'promoted with a worker that was told to end: written at once');
is($told->safe_psql('postgres', 'SELECT worker_pid FROM mot.stat_checkpoint'), $worker, 'it is the same worker');
$told->restart;
is($told->safe_psql('postgres', 'SELECT note FROM twin_mot WHERE id = 77778'), 'told', 'and restarted');
agrees($told, 'and restarted');
sound($told, 'and restarted');

# Records come at last; with readers on it.
my $readers = start_readers($standby, may_fail => 1);
$primary->start;
my $load = start_load($primary);
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
crash($standby);
stop_load($load);
stop_readers($readers);
same_rows($primary, $standby, 'when records have come');

# A server that recovers from an archive in which there is nothing.
my $alone = PostgreSQL::Test::Cluster->new('alone');
$alone->init_from_backup($primary, 'cold');
$alone->append_conf('postgresql.conf', "restore_command = 'false'\nrecovery_target_timeline = current\n");
$alone->append_conf('recovery.signal', '');
$alone->start;
$alone->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'not recovered';
is(digest($alone), $digest, 'recovered from an empty archive');
$alone->safe_psql('postgres', 'UPDATE twin_heap SET k = k + 1; UPDATE twin_mot SET k = k + 1');
crash($alone);
agrees($alone, 'recovered from an empty archive, and lost');

# The last checkpoint of a primary failed, so its cold copy has to replay what came since, before
# the first record. Its memory is enough for the live rows, but not for all their versions: it makes
# room. Meanwhile its worker is told to end: it replays the gap first.
$primary->safe_psql('postgres', q(CREATE TABLE large (id int PRIMARY KEY, changes int, v text) USING mot; CHECKPOINT));
chmod 0500, $primary->data_dir . '/mot' or die;
$primary->safe_psql('postgres', q(INSERT INTO large SELECT i, 0, repeat('v', 1000) FROM generate_series(1, 25000) i));
$primary->safe_psql('postgres', 'UPDATE large SET changes = changes + 1') for 1 .. 4;
$primary->stop('fast');
$primary->backup_fs_cold('gap');
chmod 0700, $primary->data_dir . '/mot', $primary->backup_dir . '/gap/mot' or die;
my $full = new_standby('full', $primary, 'gap', conf => "mot.max_memory = '64MB'\n");
$full->wait_for_log(qr/mot load complete/);
is($full->safe_psql('postgres', 'SELECT pg_terminate_backend(worker_pid) FROM mot.stat_checkpoint'), 't', 'the worker is told to end');
is($full->safe_psql('postgres', q(SET statement_timeout = '60s'; SELECT count(*), min(changes) FROM large)), '25000|4', 'room is made in a gap');
unlike(slurp_file($full->logfile), qr/mot could not load its tables/, 'and the load is not given up');
sound($full, 'after a gap');
$full->stop('fast');
$primary->start;

no_crash($primary, $standby, $copied, $told, $alone, $full);
done_testing();
