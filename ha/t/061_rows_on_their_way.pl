# A standby has replayed a commit, and a thread still has the rows: every way of reading waits for
# them, and finds them all. The thread is held before the record. Processes that share a scan read
# to an end that one of them takes, and it must not take it before.
use strict;
use warnings;

use IPC::Run;
use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base', conf => "mot.replay_workers = 1\nmot.replay_hand_over = always\njit = off\n");

my $shared = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET cpu_operator_cost = 1; SET max_parallel_workers_per_gather = 2; SET enable_indexscan = off; SET enable_bitmapscan = off; ';
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; ';
my $by_bitmap = 'SET enable_seqscan = off; SET enable_indexscan = off; ';
my %queries = (
	'all rows'            => 'SELECT count(*) FROM t',
	'a condition'         => 'SELECT sum(k) FROM t WHERE k % 1 = 0',
	'tuples'              => "SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM t",
	'shared'              => $shared . 'SELECT count(*) FROM t WHERE k + 1 IS NOT NULL',
	'shared, no leader'   => $shared . 'SET parallel_leader_participation = off; SELECT count(*), sum(id) FROM t WHERE k + 1 IS NOT NULL',
	'shared, rows'        => $shared . 'SET parallel_leader_participation = off; SELECT count(*) FROM (SELECT id, v FROM t WHERE length(v) > 0 OFFSET 0) q',
	'shared, joined'      => $shared . 'SELECT count(*) FROM t JOIN h USING (id) WHERE t.k + 1 > 0',
	'an index'            => $by_index . 'SELECT count(*) FROM (SELECT v FROM t WHERE id > 0 ORDER BY id OFFSET 0) q',
	'an index, backward'  => $by_index . 'SELECT string_agg(id::text, $$,$$) FROM (SELECT id FROM t ORDER BY id DESC LIMIT 5) q',
	'the largest'         => $by_index . 'SELECT max(id), min(k) FROM t',
	'a key'               => $by_index . 'SELECT v FROM t WHERE id = 2000',
	'a prepared key'      => $by_index . 'PREPARE p (int) AS SELECT v FROM t WHERE id = $1; EXECUTE p (2000)',
	'keys'                => $by_index . 'SELECT count(*) FROM t WHERE id IN (1, 1001, 1999, 2000)',
	'a bitmap'            => $by_bitmap . 'SELECT count(*) FROM t WHERE k = 3 OR id > 1500',
	'a shared bitmap'     => $shared . 'SET enable_bitmapscan = on; SET enable_seqscan = off; SET min_parallel_index_scan_size = 0; SELECT count(*) FROM t WHERE k >= 0 AND v > $$$$',
	'tuple ids'           => "SELECT count(*) FROM t WHERE ctid >= '(0,0)'",
	'blocks'              => 'SELECT count(*) FROM t TABLESAMPLE SYSTEM (100)',
	'a sample'            => 'SELECT count(*) FROM t TABLESAMPLE BERNOULLI (100)',
	'a cursor'            => 'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE id > 1990; FETCH ALL FROM c; COMMIT',
	'a cursor, backward'  => 'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM t; FETCH LAST FROM c; FETCH BACKWARD 2 FROM c; COMMIT',
	'one snapshot'        => 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM h; SELECT count(*) FROM t; COMMIT',
	'a function'          => 'SELECT look_up(2000)',
	'a subquery'          => $by_index . 'SELECT count(*) FROM h WHERE (SELECT k FROM t WHERE t.id = h.id) IS NOT NULL',
	'groups'              => 'SELECT k, count(*) FROM t GROUP BY k ORDER BY k',
	'a partitioned table' => 'SELECT count(*) FROM p');

my $fill = 'INSERT INTO %1$s SELECT i, i %% 10, repeat(chr(97 + i %% 26), 20) FROM generate_series(%2$d, %3$d) i;';
sub fill { return join '', map { sprintf $fill, $_, @_ } qw(t h p) }

$primary->safe_psql('postgres', q(
CREATE TABLE t (id int PRIMARY KEY, k int, v text) USING mot;
CREATE INDEX t_k ON t (k);
CREATE TABLE h (id int PRIMARY KEY, k int, v text) USING heap;
CREATE TABLE p (id int, k int, v text) PARTITION BY RANGE (id);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (1500) USING mot;
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (1500) TO (9999) USING mot;
CREATE FUNCTION look_up(key int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE found text; BEGIN SELECT v INTO found FROM t WHERE id = key; RETURN found; END $$;
) . fill(1, 1000) . 'ANALYZE;');
wait_replayed($primary, $standby);

my $holder = $standby->background_psql('postgres');
$holder->query_safe("SELECT mot.pause_at('replay-before-record')");
$primary->safe_psql('postgres', 'BEGIN;' . fill(1001, 2000) . 'COMMIT');
$holder->query_safe("SELECT mot.wait_until_paused('replay-before-record')");
wait_replayed($primary, $standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM h'), '2000', 'the commit is replayed');

my %sessions;
for my $what (sort keys %queries)
{
	my %session = (output => '');
	$session{run} = IPC::Run::start([ $standby->installed_command('psql'), '-XAtq', '-d', $standby->connstr('postgres') . " application_name='reads'", '-c', $queries{$what} ],
		'<', \undef, '>', \$session{output}, '2>&1', IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$sessions{$what} = \%session;
}
my $count = keys %queries;
# Each has come to where it waits: for replay, or for the processes that it shares its scan with.
ok($standby->poll_query_until('postgres', "SELECT count(*) = $count FROM pg_stat_activity WHERE application_name = 'reads' AND backend_type = 'client backend' AND state = 'active' AND wait_event IS NOT NULL AND wait_event <> 'ClientRead'"),
	'all of them wait')
  or diag($standby->safe_psql('postgres', q(SELECT state, wait_event, query FROM pg_stat_activity WHERE application_name = 'reads')));
$holder->query_safe("SELECT mot.resume('replay-before-record')");
for my $what (sort keys %queries)
{
	$sessions{$what}{run}->finish;
	is($sessions{$what}{output} =~ s/\n+$//r, $primary->safe_psql('postgres', $queries{$what}), "$what: all rows");
}
$holder->quit;
sound($standby, 'at the end', 't', 'p_1', 'p_2');
no_crash($primary, $standby);
done_testing();
