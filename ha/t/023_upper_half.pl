# Transaction ids in the upper half of their circle, and across its end: who is still running must
# be known there, too, by processes that never take a snapshot (the reclaimer, the checkpoint worker
# at a clean start). The hard case is a transaction with more subtransactions than PostgreSQL keeps
# at hand (64): whose the others are is in pg_subtrans alone.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $subtransactions = 100;
my $round = 0;

# The reclaimer has been through the tables since: each answer is behind a round, and the round that
# was under way at the first one ends before the second.
sub let_sweep
{
	my ($node) = @_;
	$node->safe_psql('postgres', 'SELECT mot.row_bytes_exactly() > 0; SELECT mot.row_bytes_exactly() > 0; SELECT mot.row_bytes_exactly() > 0');
	return;
}

sub in_twins
{
	my ($sql) = @_;
	return join ' ', map { $sql =~ s/TWIN/$_/gr } qw(twin_heap twin_mot);
}

# What a transaction with many subtransactions does: each inserts, changes and deletes rows of its
# own.
sub work
{
	my ($base) = @_;
	my $statements = in_twins("INSERT INTO TWIN VALUES ($base + 500 + i, 1, 0, 'new'); UPDATE TWIN SET k = k + 1, note = 'changed' WHERE id = $base + i;
		DELETE FROM TWIN WHERE id = $base + 200 + i;");
	return "DO \$\$ BEGIN FOR i IN 1..$subtransactions LOOP BEGIN $statements EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$;";
}

# Does that work while the rows have old states to be swept, lets it stay open, and has the
# reclaimer come by. `$begin` answers how to end it.
sub through
{
	my ($node, $what, $begin) = @_;
	my $base = 10000 * ++$round;
	$node->safe_psql('postgres', in_twins("INSERT INTO TWIN SELECT $base + i, 1, 0, 'old' FROM generate_series(1, 300) i;"));
	my $older = $node->background_psql('postgres');
	$older->query_safe('BEGIN; SELECT pg_current_xact_id()');
	$node->safe_psql('postgres', in_twins("UPDATE TWIN SET note = 'touched' WHERE id BETWEEN $base + 1 AND $base + 300;"));
	my $end = $begin->(work($base));
	$node->safe_psql('postgres', in_twins("UPDATE TWIN SET changes = changes + 1 WHERE id <= 1000;")) for 1 .. 5;
	# The horizon moves up to the open transaction.
	$older->query_safe('COMMIT');
	$older->quit;
	let_sweep($node);
	agrees($node, "$what: open");
	$end->();
	let_sweep($node);
	is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE note = 'new'), count(*) FILTER (WHERE note = 'changed'), count(*) FILTER (WHERE note = 'touched')
		FROM twin_mot WHERE id BETWEEN $base AND $base + 9999"), "$subtransactions|$subtransactions|100", "$what: all of it has committed");
	agrees($node, "$what: ended");
	sound($node, "$what: ended");
	return;
}

sub prepared
{
	my ($node, $what, $meanwhile) = @_;
	through($node, $what, sub {
		my ($work) = @_;
		$node->safe_psql('postgres', "BEGIN; $work PREPARE TRANSACTION 'p'");
		return sub {
			$meanwhile->();
			let_sweep($node);
			agrees($node, "$what: still open");
			$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
		};
	});
	return;
}

sub open_for_long
{
	my ($node, $what) = @_;
	through($node, $what, sub {
		my ($work) = @_;
		my $open = $node->background_psql('postgres');
		$open->query_safe("BEGIN; $work");
		return sub { $open->query_safe('COMMIT'); $open->quit };
	});
	return;
}

my $primary = new_primary('upper', next_xid => 3_000_000_000, conf => "autovacuum = off\n");
cmp_ok($primary->safe_psql('postgres', 'SELECT pg_current_xact_id()'), '>', 3_000_000_000, 'the ids are in the upper half');
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
open_for_long($primary, 'open');
prepared($primary, 'prepared', sub { });
prepared($primary, 'prepared, clean restart', sub { $primary->restart });
prepared($primary, 'prepared, crash', sub { crash($primary) });
prepared($primary, 'prepared, crash after a checkpoint', sub { $primary->safe_psql('postgres', 'CHECKPOINT'); crash($primary) });
# What the standby's reclaimer knows is who runs on the primary.
prepared($primary, 'prepared, swept by the standby', sub { wait_replayed($primary, $standby); let_sweep($standby); agrees($standby, 'prepared') });
same_rows($primary, $standby, 'at the end');
prepared($primary, 'prepared, promoted', sub {
	wait_replayed($primary, $standby);
	$primary->stop('fast');
	promote($standby);
	let_sweep($standby);
	$standby->safe_psql('postgres', "COMMIT PREPARED 'p'");
	$primary->start;
});
agrees($standby, 'promoted');
sound($standby, 'promoted');
is(digest($standby), digest($primary), 'both servers have the same rows');

# The numbers run out in the midst of the transaction.
my $end = 1 << 32;
my $wraps = new_primary('wraps', next_xid => $end - 2000, conf => "autovacuum = off\n");

sub near_the_end
{
	my ($node, $left) = @_;
	$node->safe_psql('postgres', "DO \$\$ BEGIN WHILE pg_current_xact_id()::text::bigint < $end - $left LOOP COMMIT; END LOOP; END \$\$");
	return;
}
near_the_end($wraps, 400);
open_for_long($wraps, 'open, shortly before the end');
near_the_end($wraps, 70);
prepared($wraps, 'prepared across the end', sub { $wraps->restart });
cmp_ok($wraps->safe_psql('postgres', 'SELECT pg_current_xact_id()'), '>', $end, 'the numbers have begun again');
prepared($wraps, 'prepared behind the end', sub { crash($wraps) });

no_crash($primary, $standby, $wraps);
done_testing();
