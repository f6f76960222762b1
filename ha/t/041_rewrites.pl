# CLUSTER, VACUUM FULL and SET TABLESPACE of tables of the access method: over crashes, beside
# checkpoints, and on a standby whose snapshots are older. Such a snapshot sees what it saw, or is
# told of a conflict; it never sees an empty table.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\nallow_in_place_tablespaces = on\n");
$primary->safe_psql('postgres', q(CREATE TABLESPACE aside LOCATION ''));
$primary->safe_psql('postgres', q(
CREATE TABLE r (id int PRIMARY KEY, v int, w text) USING mot;
CREATE INDEX r_v ON r (v);
CREATE UNIQUE INDEX r_w ON r (w DESC);
CREATE TABLE h (id int PRIMARY KEY, v int, w text) USING heap;
CREATE INDEX h_v ON h (v);
INSERT INTO r SELECT i, i % 10, 'w' || i FROM generate_series(1, 3000) i;
INSERT INTO h SELECT * FROM r;
));

my $sums = sub { my ($table) = @_; return "SELECT count(*), sum(v), sum(length(w)), (SELECT count(*) FROM $table WHERE v = 3), (SELECT sum(v) FROM $table WHERE id BETWEEN 100 AND 199) FROM $table" };
my $alike = sub {
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', $sums->('r')), $node->safe_psql('postgres', $sums->('h')), "$what: the rows are those of the heap table");
	is($node->safe_psql('postgres', q(SELECT count(*) FROM (TABLE r EXCEPT TABLE h) d)), '0', "$what: row for row");
	sound($node, $what, 'r');
};
my $change = sub {
	my ($round) = @_;
	return join '', map { "DELETE FROM $_ WHERE id % 17 = $round; UPDATE $_ SET v = v + 1, w = w || 'x' WHERE id % 5 = $round; INSERT INTO $_ SELECT i, 3, 'n' || i FROM generate_series(${round}0001, ${round}0100) i;" } 'r', 'h';
};
my @rewrites = (
	'CLUSTER r USING r_w; CLUSTER h USING h_v',
	'VACUUM FULL r; VACUUM FULL h',
	'ALTER TABLE r SET TABLESPACE aside; ALTER TABLE h SET TABLESPACE aside',
	'ALTER TABLE r SET TABLESPACE pg_default; ALTER TABLE h SET TABLESPACE pg_default');

# Lost right behind it, in its middle, and behind a checkpoint in between; the next changes are
# differences to what was logged.
my $round = 0;
for my $rewrite (@rewrites)
{
	$round++;
	my ($what) = $rewrite =~ /^(.*?);/;
	# Old versions go along.
	my $old = $primary->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	my $before = $primary->safe_psql('postgres', $sums->('h'));
	$primary->safe_psql('postgres', $change->($round));
	$primary->safe_psql('postgres', $_) for split /;/, $rewrite;
	is($old->query_safe($sums->('r')), $before, "$what: an older snapshot sees what it saw");
	$primary->safe_psql('postgres', 'UPDATE r SET v = v + 1 WHERE id % 3 = 0; UPDATE h SET v = v + 1 WHERE id % 3 = 0');
	eval { $old->quit };
	crash($primary);
	$alike->($primary, "$what, lost behind it");
	next if $what =~ /VACUUM/;

	my $session = $primary->background_psql('postgres');
	$session->query_safe('BEGIN; UPDATE r SET v = v + 1 WHERE id % 2 = 0; DELETE FROM r WHERE id % 13 = 0; ' . ($what =~ /default/ ? 'ALTER TABLE r SET TABLESPACE aside' : 'CLUSTER r USING r_pkey'));
	$session->query_safe(q(INSERT INTO r VALUES (-1, 1, 'lost')));
	$primary->safe_psql('postgres', 'CHECKPOINT');
	crash($primary);
	eval { $session->quit };
	$alike->($primary, "$what, lost in its middle");

	$primary->safe_psql('postgres', "BEGIN; UPDATE $_ SET v = v + 1 WHERE id % 2 = 0; CLUSTER $_ USING ${_}_pkey; UPDATE $_ SET v = v + 1 WHERE id % 4 = 0; DELETE FROM $_ WHERE id % 19 = $round; COMMIT;") for 'r', 'h';
	$primary->safe_psql('postgres', 'CHECKPOINT');
	$primary->safe_psql('postgres', "UPDATE $_ SET v = v + 1 WHERE id % 6 = 0") for 'r', 'h';
	crash($primary);
	$alike->($primary, "$what, in a block, lost behind a checkpoint");
}
$primary->restart;
$alike->($primary, 'restarted');

# REFRESH MATERIALIZED VIEW: rows that every snapshot of the primary sees.
$primary->safe_psql('postgres', q(
CREATE MATERIALIZED VIEW m USING mot AS SELECT id, v, w FROM r;
CREATE UNIQUE INDEX m_id ON m (id);
CREATE INDEX m_longer ON m ((w || 'y'));
));
my $refreshed = sub {
	my ($node, $what) = @_;
	is($node->safe_psql('postgres', q(SELECT (SELECT count(*) FROM (TABLE m EXCEPT TABLE h) d), (SELECT count(*) FROM (TABLE h EXCEPT TABLE m) d))), '0|0', "$what: the view has the rows");
	is($node->safe_psql('postgres', q(SET enable_seqscan = off; SELECT count(*) FROM h WHERE NOT EXISTS (SELECT FROM m WHERE m.w || 'y' = h.w || 'y'))), '0', "$what: by its index");
	sound($node, $what, 'm');
};
for my $then ('', 'CHECKPOINT')
{
	my $old = $primary->background_psql('postgres');
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	my $more = join '', map { "UPDATE $_ SET w = w || 'r' WHERE id % 7 = 1; DELETE FROM $_ WHERE id IN (SELECT min(id) FROM $_ WHERE id > 2000);" } 'r', 'h';
	$primary->safe_psql('postgres', $_) for $more, 'REFRESH MATERIALIZED VIEW m', $then;
	is($old->query_safe('SELECT count(*) FROM m'), $primary->safe_psql('postgres', 'SELECT count(*) FROM h'), "refreshed $then: an older snapshot sees the new rows");
	eval { $old->quit };
	$primary->safe_psql('postgres', 'BEGIN; REFRESH MATERIALIZED VIEW m; ROLLBACK; VACUUM FULL m');
	crash($primary);
	$refreshed->($primary, "refreshed $then, lost behind it");
}

# A standby.
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base', conf => "max_standby_streaming_delay = -1\nhot_standby_feedback = on\n");
wait_replayed($primary, $standby);
my $expected = $standby->safe_psql('postgres', $sums->('h'));
for my $rewrite (@rewrites)
{
	$round++;
	my ($what) = $rewrite =~ /^(.*?);/;
	my %old;
	for my $how ('all', 'key', 'key again')
	{
		my $session = $standby->background_psql('postgres', on_error_stop => 0);
		$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
		$session->query_safe('SET enable_seqscan = off; SET enable_indexscan = on') if $how ne 'all';
		$old{$how} = $session;
	}
	my $heap = $standby->background_psql('postgres');
	$heap->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$primary->safe_psql('postgres', $change->($round % 10));
	$primary->safe_psql('postgres', $_) for split /;/, $rewrite;
	wait_replayed($primary, $standby);
	my %question = (all => 'SELECT count(*) FROM r', key => 'SELECT id FROM r WHERE id = 1001', 'key again' => 'SELECT count(*) FROM r WHERE v = 3');
	for my $how (sort keys %old)
	{
		my $out = $old{$how}->query($question{$how}) // '';
		my $error = $old{$how}->{stderr} // '';
		is($out, '', "$what: an older snapshot gets no wrong answer ($how)");
		like($error, qr/conflict with recovery/, "$what: and is told of the conflict ($how)");
		eval { $old{$how}->quit };
	}
	$heap->quit;
	$alike->($standby, "$what, on the standby");
	is($standby->safe_psql('postgres', $sums->('r')), $primary->safe_psql('postgres', $sums->('r')), "$what: the standby has the primary's rows");
	# It is restarted from a restartpoint, and goes on.
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$standby->restart;
	$alike->($standby, "$what, on the standby, restarted");
}
# A refreshed view.
my $before = $standby->background_psql('postgres', on_error_stop => 0);
$before->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', 'REFRESH MATERIALIZED VIEW m');
wait_replayed($primary, $standby);
is($before->query('SELECT count(*) FROM m') // '', '', 'refreshed: an older snapshot gets no wrong answer');
like($before->{stderr}, qr/conflict with recovery/, 'refreshed: and is told of the conflict');
eval { $before->quit };
$refreshed->($standby, 'refreshed, on the standby');
# Snapshots go on over a promotion.
my $late = $standby->background_psql('postgres', on_error_stop => 0);
$late->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$primary->safe_psql('postgres', 'VACUUM FULL r');
wait_replayed($primary, $standby);
promote($standby);
is($late->query('SELECT count(*) FROM r') // '', '', 'promoted: no wrong answer');
like($late->{stderr}, qr/conflict with recovery/, 'promoted: the conflict is told');
eval { $late->quit };
$alike->($standby, 'promoted');
$standby->safe_psql('postgres', $_) for split /;/, $rewrites[0];
$standby->safe_psql('postgres', $change->(9));
crash($standby);
$alike->($standby, 'promoted and lost');

no_crash($primary, $standby);
done_testing();
