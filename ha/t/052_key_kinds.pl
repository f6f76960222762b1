# Keys of enums, arrays and ranges across recoveries: replay and loading make them of the rows alone, without a catalog. After each, index and rows agree.
use strict;
use warnings;

use Ledger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = new_primary('primary', conf => "autovacuum = off\n");
$primary->backup('base');
my $standby = new_standby('standby', $primary, 'base');

# What each index finds, and what a scan of all rows does.
sub looks_right
{
	my ($node, $what) = @_;
	my %conditions = (
		enum => "m = 'low'", list => "m IN ('high', 'between')", both => "m = 'between' AND a = '{2,0}'",
		array => "a > '{1}' AND a < '{2,6}'", texts => "t = '{x,NULL}'", range => "r >= '[3,)'", multirange => "s = '{[1,2),[3,4)}'",
		json => q{j = '{"k": [7.0]}'}, json_range => q{j > '{"k": [7]}' AND j < '{"k": [11]}'}, email => q{c = 'USER6@x'}, emails => q{c IN ('user1@X', 'USER8@X')}, computed => q{lower(j->>'k') = '[9]'},
		added => "later = 'high' AND span = '[1,2.0)'");
	for my $name (sort keys %conditions)
	{
		my $query = "SELECT string_agg(id::text, ',' ORDER BY id) FROM kinds WHERE $conditions{$name}";
		my $by_index = $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $query");
		my $by_rows = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $query");
		isnt($by_rows, '', "$what: $name finds rows");
		is($by_index, $by_rows, "$what: $name");
	}
	return if $node->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 't';
	$node->safe_psql('postgres', "SELECT * FROM mot.check('kinds')");
	for my $duplicate ("UPDATE kinds SET m = 'between', a = '{2,0}' WHERE id = 1", "UPDATE kinds SET r = (SELECT r FROM kinds WHERE id = 3) WHERE id = 1",
		"UPDATE kinds SET c = 'uSER3\@x' WHERE id = 1", q{UPDATE kinds SET j = '{"k": [3.00]}' WHERE id = 1})
	{
		like(($node->psql('postgres', $duplicate))[2], qr/duplicate key/, "$what: a key is kept");
	}
	return;
}

$primary->safe_psql('postgres', q{
	CREATE TYPE level AS ENUM ('low', 'high');
	CREATE EXTENSION citext;
	CREATE TABLE kinds (id int PRIMARY KEY, m level, a int[], t text[] COLLATE "C", r int4range UNIQUE, s nummultirange, j jsonb UNIQUE, c citext UNIQUE, UNIQUE (m, a)) USING mot;
	CREATE INDEX ON kinds (lower(j->>'k'));
	CREATE INDEX ON kinds (t);
	CREATE INDEX ON kinds (s DESC);
	CREATE INDEX ON kinds (a);
	INSERT INTO kinds SELECT i, 'low', ARRAY[i % 5, i], ARRAY['x', NULL], int4range(i, i + 5), '{[1.0,2),[3,4.00)}', jsonb_build_object('k', ARRAY[i]), 'User' || i || '@X' FROM generate_series(1, 6) i});
$primary->safe_psql('postgres', 'CHECKPOINT');
# A value between two others: its oid is not between theirs.
$primary->safe_psql('postgres', q{ALTER TYPE level ADD VALUE 'between' BEFORE 'high'});
$primary->safe_psql('postgres', q{
	ALTER TABLE kinds ADD COLUMN later level DEFAULT 'high', ADD COLUMN span numrange DEFAULT '[1.0,2)';
	CREATE INDEX ON kinds (later, span);
	INSERT INTO kinds SELECT i, 'between', ARRAY[i % 3, i % 4], ARRAY['y'], int4range(i + 10, NULL), '{[5,6]}', jsonb_build_object('k', ARRAY[i]), CASE i WHEN 9 THEN 'é' ELSE 'User' || i || '@X' END FROM generate_series(7, 12) i;
	UPDATE kinds SET a = '{7,7}', m = 'between' WHERE id = 2;
	DELETE FROM kinds WHERE id = 4});
looks_right($primary, 'before a crash');
crash($primary);
looks_right($primary, 'replayed');
$primary->safe_psql('postgres', "UPDATE kinds SET r = int4range(id, id + 6) WHERE id = 3; UPDATE kinds SET t = '{x,NULL}', s = '{[1,2),[3,4)}' WHERE id = 9");
wait_replayed($primary, $standby);
looks_right($standby, 'on the standby');
$primary->restart;
looks_right($primary, 'loaded');
$primary->safe_psql('postgres', "REINDEX TABLE kinds; ALTER TABLE kinds ALTER a TYPE bigint[], ALTER id TYPE bigint");
crash($primary);
looks_right($primary, 'after a rewrite');
wait_replayed($primary, $standby);
$primary->stop('immediate');
promote($standby);
looks_right($standby, 'after a promotion');

no_crash($standby);
done_testing();
