# A key too long for an index that is built beside writers: replaced before the index is valid, and
# seen by a snapshot of a standby.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');
$primary->safe_psql('postgres', q(
CREATE TABLE t (a int PRIMARY KEY, b text) USING mot;
INSERT INTO t SELECT i, 'b' || i FROM generate_series(1, 100) i;
));

my $by_index = 'SET enable_seqscan = off';
my $rows = q(SELECT count(*), sum(a) FROM t WHERE b > '');
my $question = "$by_index; $rows";
for my $how ('UPDATE t SET b = \'short\' WHERE a = 101', 'DELETE FROM t WHERE a = 101')
{
	my $pauser = $primary->background_psql('postgres');
	$pauser->query_safe(q(SELECT mot.pause_at('build-before-ready'); SELECT mot.pause_at('validate-before-rows')));
	my $maker = $primary->background_psql('postgres', on_error_stop => 0);
	$maker->query_until(qr/begun/, "\\echo begun\nCREATE INDEX CONCURRENTLY t_b ON t (b);\n");
	$primary->safe_psql('postgres', q(SELECT mot.wait_until_paused('build-before-ready')));
	$primary->safe_psql('postgres', q(INSERT INTO t VALUES (101, repeat('long', 5000))));
	$pauser->query_safe(q(SELECT mot.resume('build-before-ready')));
	$primary->safe_psql('postgres', q(SELECT mot.wait_until_paused('validate-before-rows')));
	wait_replayed($primary, $standby);
	# It is younger than the transaction that made the index.
	my $reader = $standby->background_psql('postgres');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	is($reader->query_safe($question), '101|5151', "$how: a reader of the standby, before");
	$primary->safe_psql('postgres', $how);
	$pauser->query_safe(q(SELECT mot.resume('validate-before-rows')));
	$primary->poll_query_until('postgres', q(SELECT indisvalid FROM pg_index WHERE indexrelid = 't_b'::regclass)) or die 'the index is not made';
	wait_replayed($primary, $standby);
	is($reader->query_safe($question), '101|5151', "$how: and when the index is valid");
	$reader->query_safe('COMMIT');
	my $after = $primary->safe_psql('postgres', $question);
	is($reader->query_safe($question), $after, "$how: and in the next transaction");
	like($standby->safe_psql('postgres', "$by_index; EXPLAIN (COSTS OFF) $rows"), qr/t_b/, "$how: through the index");
	sound($_, $how, 't') for $primary, $standby;
	$_->quit for $reader, $maker, $pauser;
	$primary->safe_psql('postgres', 'DROP INDEX t_b; DELETE FROM t WHERE a > 100');
}
no_crash($_) for $primary, $standby;
done_testing();
