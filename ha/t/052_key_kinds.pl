# Keys of types that hold others, and of extensions, across recoveries: replay and loading make them
# of the rows alone, without a catalog. After each, index and rows agree.
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
		row => q{w = ROW(3, ROW('w3', NULL, NULL), '{1,3}')::outer_row}, rows => q{w > ROW(2, NULL, NULL)::outer_row AND w <= ROW(9, NULL, NULL)::outer_row}, vector => q{v = 'b:1 w3:2'}, query => q{q > 'a | w'},
		hstore => q{h = 'a=>3, b=>NULL'}, hstores => q{h #># 'a=>2' AND h #<# 'a=>5'}, ltree => q{l > 'a.b2' AND l <= 'a.b9'}, cube => q{u = '(3,1),(1,2)'}, seg => q{g >= '~2' AND g < '<9'}, isbn => q{b > '978000000002?' AND b < '978000000009?'},
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
		"UPDATE kinds SET c = 'uSER3\@x' WHERE id = 1", q{UPDATE kinds SET j = '{"k": [3.00]}' WHERE id = 1}, q{UPDATE kinds SET w = ROW(11, ROW('w11', 1.0, '{}'), NULL) WHERE id = 1})
	{
		like(($node->psql('postgres', $duplicate))[2], qr/duplicate key/, "$what: a key is kept");
	}
	return;
}

$primary->safe_psql('postgres', q{
	CREATE TYPE level AS ENUM ('low', 'high');
	CREATE EXTENSION citext;
	CREATE EXTENSION hstore;
	CREATE EXTENSION ltree;
	CREATE EXTENSION cube;
	CREATE EXTENSION seg;
	CREATE EXTENSION isn;
	CREATE TYPE inner_row AS (t text COLLATE "C", n numeric);
	CREATE TYPE outer_row AS (i int, r inner_row, a int[]);
	CREATE TABLE kinds (id int PRIMARY KEY, w outer_row UNIQUE, v tsvector, q tsquery, h hstore, l ltree, u cube, g seg, b isbn, m level, a int[], t text[] COLLATE "C", r int4range UNIQUE, s nummultirange, j jsonb UNIQUE, c citext UNIQUE, UNIQUE (m, a)) USING mot;
	CREATE INDEX ON kinds (lower(j->>'k'));
	CREATE INDEX ON kinds (t);
	CREATE INDEX ON kinds (v);
	CREATE INDEX ON kinds (q, v);
	CREATE INDEX ON kinds (h);
	CREATE INDEX ON kinds (l DESC);
	CREATE INDEX ON kinds (u);
	CREATE INDEX ON kinds (g, u);
	CREATE INDEX ON kinds (b);
	CREATE INDEX ON kinds (s DESC);
	CREATE INDEX ON kinds (a);
	CREATE FUNCTION fill() RETURNS void LANGUAGE sql AS $$
		UPDATE kinds SET w = ROW(id, ROW('w' || id, NULLIF(id % 3, 0)), ARRAY[1, id]), v = to_tsvector('simple', 'b w' || id), q = ('a | w' || id)::tsquery, h = hstore(ARRAY['a', 'b'], ARRAY[id::text, NULL]),
			l = ('a.b' || id)::ltree, u = cube(ARRAY[id % 4, 1], ARRAY[1, 2]), g = (id || ' .. ~' || 2 * id)::text::seg, b = ('978' || lpad(id::text, 9, '0') || '?')::isbn WHERE w IS NULL $$;
	INSERT INTO kinds (id, m, a, t, r, s, j, c) SELECT i, 'low', ARRAY[i % 5, i], ARRAY['x', NULL], int4range(i, i + 5), '{[1.0,2),[3,4.00)}', jsonb_build_object('k', ARRAY[i]), 'User' || i || '@X' FROM generate_series(1, 6) i;
	SELECT fill()});
$primary->safe_psql('postgres', 'CHECKPOINT');
# A value between two others: its oid is not between theirs.
$primary->safe_psql('postgres', q{ALTER TYPE level ADD VALUE 'between' BEFORE 'high'});
$primary->safe_psql('postgres', q{
	ALTER TABLE kinds ADD COLUMN later level DEFAULT 'high', ADD COLUMN span numrange DEFAULT '[1.0,2)';
	CREATE INDEX ON kinds (later, span);
	INSERT INTO kinds (id, m, a, t, r, s, j, c) SELECT i, 'between', ARRAY[i % 3, i % 4], ARRAY['y'], int4range(i + 10, NULL), '{[5,6]}', jsonb_build_object('k', ARRAY[i]), CASE i WHEN 9 THEN 'é' ELSE 'User' || i || '@X' END FROM generate_series(7, 12) i;
	SELECT fill();
	ALTER TYPE inner_row ADD ATTRIBUTE later jsonb;
	UPDATE kinds SET w = ROW(id, ROW('w' || id, 1, '{}'), NULL) WHERE id = 11;
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
