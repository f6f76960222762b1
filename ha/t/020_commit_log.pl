# VACUUM cuts the commit log off while rows that a recovery will bring back lie behind the last
# checkpoint: what committed before the cut must be there all the same, what was rolled back must
# not. A file of the commit log has a million transactions; this cluster begins shortly before the
# end of the first.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $file_end = 1 << 20;
my $primary = new_primary('primary', next_xid => $file_end - 500, conf => "autovacuum = off\n");
my $first_file = 'pg_xact/0000';
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
# It cannot be read, so there are no checkpoints of ours and nobody sweeps until it is promoted.
my $unread = new_standby('unread', $primary, 'base', conf => "hot_standby = off\n");

# Everything whose outcome has to be asked for: rows, new and changed, of transactions and of
# savepoints, and tables.
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->safe_psql('postgres', qq(
BEGIN; INSERT INTO $_ VALUES (5001, 1, 0, 'committed'); SAVEPOINT a; INSERT INTO $_ VALUES (5002, 1, 0, 'savepoint'); RELEASE a;
SAVEPOINT b; INSERT INTO $_ VALUES (5003, 1, 0, 'rolled back'); ROLLBACK TO b; UPDATE $_ SET k = k + 1, changes = changes + 1 WHERE id % 7 = 0; COMMIT;
BEGIN; DELETE FROM $_ WHERE id % 11 = 0; PREPARE TRANSACTION 'kept'; COMMIT PREPARED 'kept';
BEGIN; INSERT INTO $_ VALUES (5004, 1, 0, 'prepared'); DELETE FROM $_ WHERE id % 13 = 0; PREPARE TRANSACTION 'lost'; ROLLBACK PREPARED 'lost';
)) for qw(twin_heap twin_mot);
$primary->safe_psql('postgres', q(
CREATE TABLE made (id int PRIMARY KEY, v text) USING mot;
INSERT INTO made SELECT i, 'row ' || i FROM generate_series(1, 100) i;
CREATE TABLE dropped (id int) USING mot;
INSERT INTO dropped VALUES (1);
DROP TABLE dropped;
));

my $digest = digest($primary);
my $made = $primary->safe_psql('postgres', 'SELECT count(*), min(v) FROM made');

sub is_whole
{
	my ($node, $what) = @_;
	is(digest($node), $digest, $node->name . ": all rows $what");
	is($node->safe_psql('postgres', 'SELECT count(*), min(v) FROM made'), $made, $node->name . ": the new table $what");
	agrees($node, $what);
	sound($node, $what, @Ledger::TABLES, 'made');
	return;
}

cut_commit_log($primary);
is_whole($primary, 'when the commit log was cut off');
wait_replayed($primary, $standby);
ok(!-e $standby->data_dir . "/$first_file", 'and of the standby');
is_whole($standby, 'when the cut was replayed');

# Recovery replays it all, and the cut.
crash($primary);
is_whole($primary, 'after a crash');
crash($standby);
is_whole($standby, 'after a crash');

# The standby that cannot be read replays it, too, and its redo position moves on: at its next start
# the commits lie before that, in the gap that is read before replay begins, and their part of the
# commit log is gone by then.
$primary->safe_psql('postgres', 'CHECKPOINT');
my $lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$primary->wait_for_catchup($unread, 'replay', $lsn);
$unread->stop('fast');
ok(!-e $unread->data_dir . "/$first_file", 'the commit log of the standby that cannot be read is cut off');
my $log_before = -s $unread->logfile;
$unread->start;
# Replay has begun, so the gap is behind it.
$primary->safe_psql('postgres', 'CREATE TABLE marker ()');
$lsn = $primary->safe_psql('postgres', 'SELECT pg_current_wal_lsn()');
$primary->wait_for_catchup($unread, 'replay', $lsn);
like(slurp_file($unread->logfile, $log_before), qr/mot replayed [1-9]\d* of \d+ WAL records between its checkpoint/, 'it has read a gap');
promote($unread);
is_whole($unread, 'of a gap, promoted');
crash($unread);
# With hot_standby = off a server that recovers counts as started.
$unread->poll_query_until('postgres', 'SELECT true') or die 'unread does not recover';
is_whole($unread, 'of a gap, promoted and lost');

# Prepared transactions are in the last checkpoint before a shutdown, and are ended where there are
# no workers; so is the commit log cut off. At the next start nobody replays anything.
my $alone = new_primary('alone', next_xid => $file_end - 500, conf => "autovacuum = off\n");
$alone->safe_psql('postgres', qq(
UPDATE pg_database SET datallowconn = true WHERE datname = 'template0';
BEGIN; INSERT INTO twin_heap VALUES (5001, 1, 0, 'kept'); INSERT INTO twin_mot VALUES (5001, 1, 0, 'kept'); DELETE FROM twin_heap WHERE k = 7;
DELETE FROM twin_mot WHERE k = 7; PREPARE TRANSACTION 'kept';
BEGIN; INSERT INTO twin_heap VALUES (5002, 1, 0, 'lost'); INSERT INTO twin_mot VALUES (5002, 1, 0, 'lost'); DELETE FROM twin_heap WHERE k = 8;
DELETE FROM twin_mot WHERE k = 8; PREPARE TRANSACTION 'lost';
));
$alone->stop('fast');

sub in_single_user
{
	my ($node, $database, @statements) = @_;
	my ($input, $output) = (join("\n", @statements) . "\n", '');
	IPC::Run::run([ $node->installed_command('postgres'), '--single', '-D', $node->data_dir, $database ], '<', \$input, '>', \$output, '2>&1');
	unlike($output, qr/ERROR|FATAL|PANIC/, "single-user mode in $database") or diag($output);
	return;
}

in_single_user($alone, 'postgres', "COMMIT PREPARED 'kept'", "ROLLBACK PREPARED 'lost'",
	'DO $$ BEGIN FOR i IN 1..600 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$', 'VACUUM (FREEZE)');
in_single_user($alone, $_, 'VACUUM (FREEZE)') for qw(template1 template0);
ok(!-e $alone->data_dir . "/$first_file", 'the commit log is cut off in single-user mode');
$alone->start;
my $rows = q(SELECT count(*) FILTER (WHERE note = 'kept'), count(*) FILTER (WHERE note = 'lost'), count(*) FILTER (WHERE k = 7),
	count(*) FILTER (WHERE k = 8) FROM twin_mot);
is($alone->safe_psql('postgres', $rows), '1|0|0|20', 'prepared transactions ended as was said');
agrees($alone, 'after single-user mode');
sound($alone, 'after single-user mode');
crash($alone);
is($alone->safe_psql('postgres', $rows), '1|0|0|20', 'and lost again');
agrees($alone, 'after single-user mode, and lost again');

no_crash($primary, $standby, $unread, $alone);
done_testing();
