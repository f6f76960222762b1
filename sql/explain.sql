-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_explain;
CREATE SCHEMA fdw_explain_heap;
SET search_path = fdw_explain, pg_catalog;
CREATE FUNCTION outcome(place text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text := ''; n bigint := 0; r record;
BEGIN
  PERFORM set_config('search_path', place || ', pg_catalog', true);
  IF statement ~* '^\s*(select|with|values|table)|returning' THEN
    FOR r IN EXECUTE statement LOOP n := n + 1; result := result || r::text || E'\n'; END LOOP;
  ELSE
    EXECUTE statement;
    GET DIAGNOSTICS n = ROW_COUNT;
  END IF;
  RETURN n || ' rows' || E'\n' || result;
EXCEPTION WHEN others THEN
  RETURN 'error ' || sqlstate || ': ' || sqlerrm || E'\n';
END $$;
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE mine text := fdw_explain.outcome('fdw_explain', statement); heap text := fdw_explain.outcome('fdw_explain_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_explain, pg_catalog', true);
  IF statement !~* 'order by' THEN
    mine := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(mine, E'\n') line);
    heap := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(heap, E'\n') line);
  END IF;
  IF mine IS DISTINCT FROM heap THEN
    RETURN 'DIFFERENT' || E'\n-- mot:\n' || left(mine, 2000) || E'\n-- heap:\n' || left(heap, 2000);
  END IF;
  RETURN 'same: ' || coalesce((regexp_match(mine, '(\d+ rows|error [^\n]*)'))[1], mine);
END $$;
-- The same table in both places.
CREATE FUNCTION twin(name text, columns text, VARIADIC indexes text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE i text;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE fdw_explain.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_explain_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_explain.' || name);
    EXECUTE format(i, 'fdw_explain_heap.' || name);
  END LOOP;
END $$;
-- EXPLAIN: which path is taken and how it reads.
SELECT twin('t', 'id int PRIMARY KEY, a int, b int, c text COLLATE "C", v text', 'CREATE INDEX ON %s (a, b)', 'CREATE UNIQUE INDEX ON %s (c)');
SELECT twin('u', 'x int, y int, z text, PRIMARY KEY (x, y)');
INSERT INTO t SELECT i, i % 100, i % 7, 'c' || i, 'v' FROM generate_series(1, 10000) i;
INSERT INTO u SELECT i % 50, i, 'z' FROM generate_series(1, 5000) i;
INSERT INTO fdw_explain_heap.t SELECT * FROM t;
INSERT INTO fdw_explain_heap.u SELECT * FROM u;
ANALYZE t; ANALYZE u; ANALYZE fdw_explain_heap.t; ANALYZE fdw_explain_heap.u;
-- Without what versions of the server write differently: "(returns $0)" behind an InitPlan, and rows with decimals.
CREATE FUNCTION plan(statement text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, statement) LOOP
    CONTINUE WHEN line ~ 'Index Searches';
    RETURN NEXT regexp_replace(regexp_replace(line, ' \(returns [^)]*\)', ''), '(rows=\d+)\.00', '\1');
  END LOOP;
END $$;
SELECT plan('SELECT * FROM t');
SELECT plan('SELECT * FROM t WHERE v = ''x''');
SELECT plan('SELECT * FROM t WHERE id = 5');
SELECT plan('SELECT * FROM t WHERE 5 = id AND v = ''x''');
SELECT plan('SELECT * FROM t WHERE id IN (5, 6, 7)');
SELECT plan('SELECT * FROM t WHERE a = 5 AND b > 3');
SELECT plan('SELECT * FROM t WHERE a = 5 AND b BETWEEN 3 AND 4 AND v <> ''''');
SELECT plan('SELECT * FROM t WHERE a = 5 ORDER BY b LIMIT 1');
SELECT plan('SELECT * FROM t WHERE a = 5 ORDER BY b DESC LIMIT 1');
SELECT plan('SELECT * FROM t ORDER BY id LIMIT 10');
SELECT plan('SELECT * FROM t ORDER BY id DESC LIMIT 10');
SELECT plan('SELECT * FROM t WHERE c = ''c5''');
SELECT plan('SELECT * FROM t WHERE c LIKE ''c99%''');
SELECT plan('SELECT * FROM t WHERE a IS NULL');
SELECT plan('SELECT max(a) FROM t');
SELECT plan('SELECT min(b) FROM t WHERE a = 3');
SELECT plan('SELECT * FROM t WHERE a + 1 = 5');
-- joins: nested loops through the index when few rows come from outside, of either kind of table
SELECT plan('SELECT * FROM u JOIN t ON t.id = u.y WHERE u.x = 3 AND u.y < 100');
SELECT plan('SELECT * FROM fdw_explain_heap.u JOIN t ON t.id = u.y WHERE u.x = 3 AND u.y < 100');
SELECT plan('SELECT * FROM u JOIN fdw_explain_heap.t ON t.id = u.y WHERE u.x = 3 AND u.y < 100');
SELECT plan('SELECT * FROM t JOIN u ON u.x = t.b AND u.y = t.id WHERE t.a = 5 AND t.b = 2');
SELECT plan('SELECT * FROM t JOIN u ON t.b = u.y');
SELECT plan('SELECT * FROM t LEFT JOIN (SELECT DISTINCT x, y FROM u) d ON d.x = 1 AND d.y = t.id');
SELECT plan('SELECT t.v, u.z FROM t LEFT JOIN u ON u.x = 1 AND u.y = t.id WHERE t.id < 5');
SELECT plan('SELECT (SELECT count(*) FROM u WHERE u.x = t.b) FROM t WHERE id = 1');
-- changes: in the scan node where nothing stands against it
SELECT plan('UPDATE t SET v = ''x'' WHERE id = 5');
SELECT plan('UPDATE t SET v = ''x'' WHERE id = 5 AND v = ''y'' RETURNING *');
SELECT plan('UPDATE t SET v = (SELECT max(z) FROM u) WHERE a = 5');
SELECT plan('UPDATE t SET v = (SELECT max(z) FROM u WHERE u.x = t.a) WHERE id = 5');
SELECT plan('UPDATE t SET v = z FROM u WHERE u.x = 1 AND u.y = t.id AND t.id = 5');
SELECT plan('DELETE FROM t WHERE a = 5 AND b = 3');
SELECT plan('DELETE FROM t WHERE id IN (SELECT y FROM u WHERE x IN (3, 4))');
SELECT plan('INSERT INTO t (id, c) VALUES (1, ''1'') ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE t.a > 3');
SELECT plan('SELECT * FROM t WHERE id = 5 FOR UPDATE');
-- Subplans of a condition are shown (whose own form differs from version to version).
SELECT btrim(line) FROM plan('UPDATE t SET v = ''x'' WHERE id NOT IN (SELECT x FROM u)') line WHERE line LIKE '% SubPlan 1' OR line LIKE '%Scan on u%';
SELECT btrim(line) FROM plan('DELETE FROM t WHERE a = 5 AND (b = 3 OR EXISTS (SELECT FROM u WHERE u.x = t.b))') line WHERE line LIKE '% SubPlan 1' OR line LIKE '%Scan on u%';
-- estimates: a unique key is one row, before ANALYZE too
CREATE FOREIGN TABLE n (a int, b int, c int, PRIMARY KEY (a, b)) SERVER mot;
INSERT INTO n SELECT i % 10, i, i FROM generate_series(1, 1000) i;
CREATE FUNCTION estimate(statement text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE j json; BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || statement INTO j; RETURN j -> 0 -> 'Plan' ->> 'Plan Rows'; END $$;
SELECT estimate('SELECT * FROM n WHERE a = 1 AND b = 1'), estimate('SELECT * FROM n');
SELECT plan('SELECT * FROM t WHERE a = 5 AND v = ''none''', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan('UPDATE t SET v = ''x'' WHERE a = 5 AND b < 3 AND v = ''v''', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
SELECT plan('DELETE FROM t WHERE a = 6 AND v = ''none''', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
EXPLAIN (VERBOSE, COSTS OFF) SELECT t.id FROM t WHERE t.id = 5;
PREPARE q(int) AS SELECT * FROM t WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE q(5);
SELECT (mot.check('t')).rows AS t, (mot.check('u')).rows AS u, (mot.check('n')).rows AS n;
