# A subtransaction that wrote memory-optimized rows only leaves its id nowhere in PostgreSQL's WAL
# before the commit record. Its rows can be in a checkpoint by then. If the server is lost before
# the commit, its id must not be given to another transaction, whose commit would be that of the
# rows.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary');

# Logs rows of five subtransactions while a checkpoint is under way that began before they had ids,
# and is lost before the commit.
sub lose_logged
{
	my ($node, $what, %params) = @_;
	my $holder = $node->background_psql('postgres');
	$holder->query_safe("SELECT pg_advisory_lock(77), mot.pause_at('checkpoint-after-redo')");
	my $checkpoint = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CHECKPOINT' ], '<', \undef, '>', \my $output, '2>&1');
	$node->safe_psql('postgres', q(SET statement_timeout = '60s'; SELECT mot.wait_until_paused('checkpoint-after-redo')));
	$node->safe_psql('postgres', $params{prepare}) if $params{prepare};
	my $before = $node->safe_psql('postgres', 'SELECT pg_snapshot_xmax(pg_current_snapshot())');
	my $open = $node->background_psql('postgres', on_error_stop => 0);
	my $rows = join ' ', map { "SAVEPOINT s; INSERT INTO twin_mot VALUES (9000 + $_, 1, 0, 'lost'); UPDATE twin_mot SET note = 'lost' WHERE id = $_; RELEASE s;" } 1 .. 5;
	# It stops behind our callback, where another extension's may take its time.
	$open->query_until(qr/begun/, "BEGIN; $rows SELECT mot.run_behind_pre_commit('SELECT pg_advisory_lock(77)');\n\\echo begun\nCOMMIT;\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 77 AND NOT granted") or die 'the commit does not come';
	$holder->query_safe("SELECT mot.resume('checkpoint-after-redo')");
	$checkpoint->finish;
	$node->kill9;
	wait_gone($node);
	eval { $_->quit } for $open, $holder;
	# The checkpoint stays the newest one of ours, if that is wished.
	chmod 0500, $node->data_dir . '/mot' or die if $params{lasts};
	$node->start;
	$node->safe_psql('postgres', 'SELECT pg_current_xact_id()') for 1 .. 20;
	cmp_ok($node->safe_psql('postgres', 'SELECT pg_current_xact_id()'), '>', $before + 20, 'ids were used since');
	gone($node, $what);
	return;
}

# Nothing of what was lost is seen, before and after the reclaimer has come by.
sub gone
{
	my ($node, $what) = @_;
	for (1, 2)
	{
		is($node->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'lost')), 0, "$what: nothing of it is there");
		agrees($node, $what);
		$node->safe_psql('postgres', 'SELECT mot.row_bytes_exactly() > 0; SELECT mot.row_bytes_exactly() > 0');
	}
	return;
}

lose_logged($primary, 'lost');
# Whoever wants the rows and the keys finds them free.
$primary->safe_psql('postgres', "SET lock_timeout = '2s'; INSERT INTO $_ VALUES (9001, 1, 0, 'again'); UPDATE $_ SET note = 'again' WHERE id <= 5;
	DELETE FROM $_ WHERE id = 9001") for qw(twin_heap twin_mot);
agrees($primary, 'written again');
sound($primary, 'written again');
crash($primary);
gone($primary, 'written again, and lost again');
sound($primary, 'written again, and lost again');

# Lost once more when ids have been given out since, and no checkpoint could be written: the one
# that has the rows is loaded again.
lose_logged($primary, 'lost with the checkpoint', lasts => 1);
$primary->kill9;
wait_gone($primary);
chmod 0700, $primary->data_dir . '/mot' or die;
$primary->start;
gone($primary, 'lost with the checkpoint, and lost again');
sound($primary, 'lost with the checkpoint, and lost again');

# Beside a prepared transaction: from its id on rows may be of prepared ones.
my $prepare = 'BEGIN; ' . join(' ', map { "SAVEPOINT s; INSERT INTO $_ VALUES (9100, 1, 0, 'prepared'); RELEASE s;" } qw(twin_heap twin_mot)) . " PREPARE TRANSACTION 'p'";
lose_logged($primary, 'lost beside a prepared one', prepare => $prepare);
crash($primary);
gone($primary, 'lost again beside a prepared one');
$primary->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($primary->safe_psql('postgres', q(SELECT count(*) FROM twin_mot WHERE note = 'prepared')), 1, 'which commits');
gone($primary, 'with the prepared one committed');
sound($primary, 'with the prepared one committed');
no_crash($primary);
done_testing();
