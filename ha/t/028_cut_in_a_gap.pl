# VACUUM cuts the commit log off while checkpoints of the memory-optimized tables fail, so that rows
# and their commits lie in the gap that is read before PostgreSQL replays: what committed there must
# be there, what did not must not, and nobody may be asked whose file is gone. A file of the commit
# log has a million transactions; this cluster begins shortly before the end of the first.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $file_end = 1 << 20;
my $primary = new_primary('primary', next_xid => $file_end - 500, conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
my $first_file = 'pg_xact/0000';
# A standby must have replayed a checkpoint for one of its own.
my $is_behind = 'SELECT s.covered_lsn < c.redo_lsn FROM mot.stat_checkpoint s, pg_control_checkpoint() c';

sub checkpoint
{
	my ($node, $what) = @_;
	$primary->safe_psql('postgres', 'CHECKPOINT') if $node != $primary;
	wait_replayed($primary, $standby);
	$node->safe_psql('postgres', 'CHECKPOINT');
	is($node->safe_psql('postgres', $is_behind), 't', $node->name . ": a checkpoint that ours does not cover, $what");
	return;
}

# Every statement on both tables, in a transaction of its own for each.
sub on_both
{
	my ($statements) = @_;
	$primary->safe_psql('postgres', $statements =~ s/TWIN/$_/gr) for qw(twin_heap twin_mot);
	return;
}

$primary->safe_psql('postgres', 'CHECKPOINT');
wait_replayed($primary, $standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
chmod 0500, $_->data_dir . '/mot' or die for $primary, $standby;

# The primary's redo position lies behind this, and before the cut; its next transaction is one of
# the file that will be gone.
on_both(q(
INSERT INTO TWIN VALUES (5001, 1, 0, 'committed');
BEGIN; SAVEPOINT a; INSERT INTO TWIN VALUES (5002, 1, 0, 'savepoint'); RELEASE a; SAVEPOINT b; INSERT INTO TWIN VALUES (5003, 1, 0, 'rolled back'); ROLLBACK TO b;
UPDATE TWIN SET k = k + 1, changes = changes + 1 WHERE id % 7 = 0; COMMIT;
BEGIN; DELETE FROM TWIN WHERE id % 11 = 0; SAVEPOINT c; INSERT INTO TWIN VALUES (5004, 1, 0, 'prepared'); PREPARE TRANSACTION 'kept'; COMMIT PREPARED 'kept';
BEGIN; INSERT INTO TWIN VALUES (5005, 1, 0, 'prepared'); DELETE FROM TWIN WHERE id % 13 = 0; PREPARE TRANSACTION 'lost'; ROLLBACK PREPARED 'lost';
));
$primary->safe_psql('postgres', q(
CREATE TABLE made (id int PRIMARY KEY, v text) USING mot;
INSERT INTO made SELECT i, 'row ' || i FROM generate_series(1, 100) i;
CREATE TABLE dropped (id int) USING mot;
INSERT INTO dropped VALUES (1);
DROP TABLE dropped;
));
checkpoint($primary, 'before the cut');
cut_commit_log($primary);
wait_replayed($primary, $standby);
ok(!-e $standby->data_dir . "/$first_file", 'and of the standby');
my $digest = digest($primary);
my $made = 'SELECT count(*), min(v) FROM made';

sub is_whole
{
	my ($node, $what) = @_;
	is(digest($node), $digest, $node->name . ": all rows $what");
	is($node->safe_psql('postgres', $made), '100|row 1', $node->name . ": the new table $what");
	agrees($node, $what);
	# A check waits for whoever may write, and prepared transactions may.
	sound($node, $what, @Ledger::TABLES, 'made') if $node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts') == 0;
	return;
}

crash($primary);
is_whole($primary, 'after a crash, with the cut behind the gap');

# No checkpoint of ours succeeds still: the gap has the cut now. One transaction commits behind it
# that was prepared in it.
$primary->safe_psql('postgres', q(
BEGIN; INSERT INTO twin_heap VALUES (5006, 1, 0, 'behind'); SAVEPOINT a; INSERT INTO twin_mot VALUES (5006, 1, 0, 'behind'); PREPARE TRANSACTION 'behind';
BEGIN; INSERT INTO twin_heap VALUES (5007, 1, 0, 'later'); SAVEPOINT a; INSERT INTO twin_mot VALUES (5007, 1, 0, 'later'); PREPARE TRANSACTION 'later';
));
on_both(q(INSERT INTO TWIN VALUES (5008, 1, 0, 'committed')));
checkpoint($primary, 'behind the cut');
$primary->safe_psql('postgres', q(COMMIT PREPARED 'behind'));
$digest = digest($primary);
agrees($primary, 'when a prepared transaction has committed');
crash($primary);
is_whole($primary, 'after a crash, with the cut in the gap');
chmod 0700, $primary->data_dir . '/mot' or die;
$primary->poll_query_until('postgres', $is_behind, 'f') or die 'no checkpoint';
crash($primary);
is_whole($primary, 'after a checkpoint and a crash');

# The standby has the cut in its gap, and what follows is nothing: replay does not come by it again.
wait_replayed($primary, $standby);
is_whole($standby, 'while checkpoints fail');
checkpoint($standby, 'behind the cut');
$primary->stop('fast');
$standby->stop('fast');
my $seen = -s $standby->logfile;
$standby->start;
is_whole($standby, 'with the cut in the gap');
promote($standby);
is_whole($standby, 'promoted');
$standby->safe_psql('postgres', q(COMMIT PREPARED 'later'));
is($standby->safe_psql('postgres', 'SELECT count(*) FROM twin_mot WHERE id = 5007'), '1', 'a transaction that was prepared in the gap commits');
$digest = digest($standby);
chmod 0700, $standby->data_dir . '/mot' or die;
$standby->poll_query_until('postgres', $is_behind, 'f') or die 'no checkpoint';
crash($standby);
is_whole($standby, 'promoted and lost');
unlike(slurp_file($standby->logfile, $seen), qr/could not access status of transaction|could not reclaim/, 'nobody asked for what is gone');

no_crash($primary, $standby);
done_testing();
