-- Lists for several columns of an index: very many combinations. They are not made before they are looked up.
CREATE FOREIGN TABLE mv (a int NOT NULL, b int, c int, d int) SERVER mot;
INSERT INTO mv SELECT i % 97, nullif(i % 31, 7), i % 11, i FROM generate_series(1, 40000) i;
CREATE INDEX mv_abc ON mv (a, b DESC, c);
CREATE UNIQUE INDEX mv_adb ON mv (a, d, c);
CREATE TABLE mv_heap AS SELECT * FROM mv;
ANALYZE mv, mv_heap;
SET plan_cache_mode = force_generic_plan;
PREPARE three(int[], int[], int[]) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND b = ANY ($2) AND c = ANY ($3) ORDER BY a, b DESC, c;
PREPARE three_backward(int[], int[], int[]) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND b = ANY ($2) AND c = ANY ($3) ORDER BY a DESC, b, c DESC;
PREPARE then_one(int[], int[], int) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND b = ANY ($2) AND c = $3 ORDER BY a, b DESC, c;
PREPARE then_range(int[], int[], int) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND b = ANY ($2) AND c > $3 ORDER BY a, b DESC, c;
PREPARE then_range_backward(int[], int[], int) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND b = ANY ($2) AND c > $3 ORDER BY a DESC, b, c DESC;
PREPARE around_null(int[], int[]) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND b IS NULL AND c = ANY ($2) ORDER BY a, c;
PREPARE whole_keys(int[], int[], int[]) AS SELECT a, b, c, d FROM mv WHERE a = ANY ($1) AND d = ANY ($2) AND c = ANY ($3) ORDER BY a, d, c;
PREPARE one(int[], int[], int[]) AS SELECT a, b, c FROM mv WHERE a = ANY ($1) AND b = ANY ($2) AND c = ANY ($3) ORDER BY a, b DESC, c LIMIT 1;
EXPLAIN (COSTS OFF) EXECUTE three('{}', '{}', '{}');
EXPLAIN (COSTS OFF) EXECUTE three_backward('{}', '{}', '{}');
EXPLAIN (COSTS OFF) EXECUTE then_one('{}', '{}', 1);
EXPLAIN (COSTS OFF) EXECUTE then_range('{}', '{}', 1);
-- From 17 on this one would be sorted by parts.
SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) EXECUTE around_null('{}', '{}');
RESET enable_incremental_sort;
EXPLAIN (COSTS OFF) EXECUTE whole_keys('{}', '{}', '{}');
-- The statement gives what the heap table's rows would be, in the same order.
CREATE FUNCTION pg_temp.lists(count int) RETURNS text LANGUAGE sql AS 'SELECT quote_literal(array_agg(i ORDER BY i % 13, i)::text) FROM generate_series(-5, count) i';
CREATE FUNCTION pg_temp.compared(statement text, condition text, sorted text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE got text[]; wanted text[]; found record;
BEGIN
  FOR found IN EXECUTE statement LOOP
    got := got || concat_ws(',', found.a, found.b, found.c);
  END LOOP;
  EXECUTE format('SELECT array_agg(concat_ws('','', a, b, c) ORDER BY %s) FROM mv_heap WHERE %s', sorted, condition) INTO wanted;
  RETURN format('%s rows, %s', cardinality(got), CASE WHEN got = wanted THEN 'as on the heap table' ELSE 'DIFFERENT' END);
END $$;
SELECT name, pg_temp.compared(format('EXECUTE %s(%s)', name, arguments), condition, sorted) FROM (VALUES
  ('three', concat_ws(',', pg_temp.lists(60), pg_temp.lists(25), pg_temp.lists(6)), 'a <= 60 AND b <= 25 AND c <= 6', 'a, b DESC, c'),
  ('three_backward', concat_ws(',', pg_temp.lists(60), pg_temp.lists(25), pg_temp.lists(6)), 'a <= 60 AND b <= 25 AND c <= 6', 'a DESC, b, c DESC'),
  ('three', concat_ws(',', pg_temp.lists(5000), pg_temp.lists(3), pg_temp.lists(3)), 'b <= 3 AND c <= 3', 'a, b DESC, c'),
  ('then_one', concat_ws(',', pg_temp.lists(90), pg_temp.lists(80), '4'), 'a <= 90 AND b <= 80 AND c = 4', 'a, b DESC, c'),
  ('then_range', concat_ws(',', pg_temp.lists(90), pg_temp.lists(80), '6'), 'a <= 90 AND b <= 80 AND c > 6', 'a, b DESC, c'),
  ('then_range_backward', concat_ws(',', pg_temp.lists(90), pg_temp.lists(80), '6'), 'a <= 90 AND b <= 80 AND c > 6', 'a DESC, b, c DESC'),
  ('around_null', concat_ws(',', pg_temp.lists(5000), pg_temp.lists(5)), 'b IS NULL AND c <= 5', 'a, c'),
  ('whole_keys', concat_ws(',', pg_temp.lists(40), pg_temp.lists(300), pg_temp.lists(8)), 'a <= 40 AND d <= 300 AND c <= 8', 'a, d, c')
) AS cases(name, arguments, condition, sorted);
-- Combinations between entries are passed over.
CREATE FUNCTION pg_temp.spread(low int, high int, step int) RETURNS text LANGUAGE sql AS 'SELECT quote_literal(array_agg(i ORDER BY i % 13, i)::text) FROM generate_series(low, high, step) i';
SELECT name, pg_temp.compared(format('EXECUTE %s(%s, %s, %s)', name, first, second, third), format(condition, first, second, third), sorted) FROM (VALUES
  ('three', 'a = ANY (%s) AND b = ANY (%s) AND c = ANY (%s)', 'a, b DESC, c', pg_temp.spread(-3001, 3000, 7), pg_temp.spread(-3002, 3000, 5), pg_temp.spread(-300, 300, 3)),
  ('three_backward', 'a = ANY (%s) AND b = ANY (%s) AND c = ANY (%s)', 'a DESC, b, c DESC', pg_temp.spread(-3001, 3000, 7), pg_temp.spread(-3002, 3000, 5), pg_temp.spread(-300, 300, 3)),
  ('three', 'a = ANY (%s) AND b = ANY (%s) AND c = ANY (%s)', 'a, b DESC, c', pg_temp.spread(90, 8000, 1), pg_temp.spread(-9000, 2, 2), pg_temp.spread(7, 7, 1)),
  ('three_backward', 'a = ANY (%s) AND b = ANY (%s) AND c = ANY (%s)', 'a DESC, b, c DESC', pg_temp.spread(-8000, 3, 1), pg_temp.spread(28, 9000, 2), pg_temp.spread(7, 7, 1)),
  ('then_range', 'a = ANY (%s) AND b = ANY (%s) AND c > %s', 'a, b DESC, c', pg_temp.spread(-5000, 5000, 9), pg_temp.spread(-5000, 5000, 4), '8'),
  ('then_range_backward', 'a = ANY (%s) AND b = ANY (%s) AND c > %s', 'a DESC, b, c DESC', pg_temp.spread(-5000, 5000, 9), pg_temp.spread(-5000, 5000, 4), '8'),
  ('whole_keys', 'a = ANY (%s) AND d = ANY (%s) AND c = ANY (%s)', 'a, d, c', pg_temp.spread(-3001, 3000, 7), pg_temp.spread(-99999, 99999, 77), pg_temp.spread(-48, 48, 2))
) AS cases(name, condition, sorted, first, second, third);
-- The first row of nine million combinations, at once; and none of them.
SELECT array_agg(i)::text AS list FROM generate_series(0, 2999) i \gset
SET statement_timeout = '500ms';
EXECUTE one(:'list', :'list', '{0}');
SELECT array_agg(-i)::text AS list FROM generate_series(1, 3000) i \gset
EXECUTE one(:'list', :'list', '{0}');
EXECUTE three(:'list', :'list', '{0}');
-- A serializable transaction reads each of them, and can be ended.
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE three(:'list', :'list', '{0}');
ROLLBACK;
RESET statement_timeout;
RESET plan_cache_mode;
DEALLOCATE ALL;
DROP TABLE mv_heap;
DROP FOREIGN TABLE mv;
