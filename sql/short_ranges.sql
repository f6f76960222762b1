-- Ranges between two parameters: taken to be short where the values could not change the plan, so that a prepared statement gets a generic
-- plan (mot_ext/src/index_am/short_range.rs).
CREATE SCHEMA short_ranges;
SET search_path = short_ranges;
CREATE FOREIGN TABLE t (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, v text) SERVER mot;
CREATE INDEX t_ab ON t (a, b);
CREATE INDEX t_v ON t (v COLLATE "C");
CREATE FOREIGN TABLE u (x int PRIMARY KEY) SERVER mot;
INSERT INTO t SELECT i, i % 4, i, 'v' || i % 500 FROM generate_series(1, 100000) i;
INSERT INTO u SELECT i FROM generate_series(1, 40000) i;
ANALYZE t;
ANALYZE u;
-- A short range: planned five times for its values, then once for all.
PREPARE points(int, int) AS SELECT id, a FROM t WHERE id BETWEEN $1 AND $2;
PREPARE sums(int, int) AS SELECT sum(b), count(*) FROM t WHERE id >= $1 AND id < $2;
PREPARE distincts(int, int) AS SELECT DISTINCT b % 4 FROM t WHERE id > $1 AND id <= $2 ORDER BY 1;
PREPARE prefixed(int, int) AS SELECT count(*) FROM t WHERE a = 1 AND b BETWEEN $1 AND $2;
PREPARE changes(int, int) AS UPDATE t SET v = v || 'x' WHERE id BETWEEN $1 AND $2;
CREATE FUNCTION execute(statement text, times int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text; r record;
BEGIN
    FOR i IN 1 .. times LOOP
        result := '';
        FOR r IN EXECUTE replace(statement, 'PLUS', i::text) LOOP result := result || r::text; END LOOP;
    END LOOP;
    RETURN result;
END $$;
SELECT execute('EXECUTE points(100 + PLUS, 104 + PLUS)', 8);
SELECT execute('EXECUTE sums(100 + PLUS, 110 + PLUS)', 8);
SELECT execute('EXECUTE distincts(100 + PLUS, 102 + PLUS)', 8);
SELECT execute('EXECUTE prefixed(100 + PLUS, 140 + PLUS)', 8);
DO $$ BEGIN FOR i IN 1 .. 8 LOOP EXECUTE format('EXECUTE changes(%s, %s)', 200 + i, 201 + i); END LOOP; END $$;
SELECT id, v FROM t WHERE v COLLATE "C" LIKE '%x' ORDER BY id;
SELECT name, generic_plans, custom_plans FROM pg_prepared_statements ORDER BY name;
-- The same plans serve ranges of any length, and none.
EXECUTE sums(1, 100001);
EXECUTE sums(20, 20);
EXECUTE sums(NULL, 20);
EXECUTE sums(-5, 3);
EXECUTE distincts(0, 100000);
EXECUTE points(99999, 2147483647);
SELECT name, generic_plans FROM pg_prepared_statements WHERE name IN ('sums', 'distincts', 'points') ORDER BY name;
-- Where the values might change the plan the estimate is core's: a two-hundredth of the table, here 500 rows.
CREATE FUNCTION scanned_rows(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE j json; found text;
BEGIN
    EXECUTE 'PREPARE s(int, int) AS ' || statement;
    EXECUTE 'EXPLAIN (FORMAT json) EXECUTE s(1, 2)' INTO j;
    DEALLOCATE s;
    SELECT string_agg(m[1], ' ') INTO found FROM regexp_matches(j::text, '"Relation Name": "t".*?"Plan Rows": (\d+),', 'g') m;
    RETURN found;
END $$;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN $1 AND $2') AS short;
SELECT scanned_rows('SELECT v FROM t WHERE id BETWEEN $1 AND $1 + $2 ORDER BY b') AS short;
SELECT scanned_rows('DELETE FROM t WHERE id BETWEEN $1 AND $2') AS short;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN $1 AND $2 FOR UPDATE') AS short;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN $1 AND $2 LIMIT 10') AS limited;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN $1 AND $2 ORDER BY v COLLATE "C"') AS other_order;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN $1 AND $2 AND b >= 1') AS filtered;
SELECT scanned_rows('SELECT max(v COLLATE "C") FROM t WHERE id BETWEEN $1 AND $2') AS by_another_index;
SELECT scanned_rows('SELECT * FROM t, u WHERE id BETWEEN $1 AND $2 AND x = b') AS joined;
SELECT scanned_rows('SELECT *, (SELECT count(*) FROM u WHERE x = b) FROM t WHERE id BETWEEN $1 AND $2') AS with_subquery;
SELECT scanned_rows('SELECT * FROM (SELECT * FROM t WHERE id BETWEEN $1 AND $2 OFFSET 0) AS s') AS in_subquery;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN 5 AND $1 + $2') AS one_known;
RESET plan_cache_mode;
SELECT scanned_rows('SELECT * FROM t WHERE id BETWEEN $1 AND $2 + 998')::int BETWEEN 800 AND 1200 AS known;
DROP SCHEMA short_ranges CASCADE;
