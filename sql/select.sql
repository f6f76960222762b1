-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_select;
CREATE SCHEMA fdw_select_heap;
SET search_path = fdw_select, pg_catalog;
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
DECLARE mine text := fdw_select.outcome('fdw_select', statement); heap text := fdw_select.outcome('fdw_select_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_select, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_select.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_select_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_select.' || name);
    EXECUTE format(i, 'fdw_select_heap.' || name);
  END LOOP;
END $$;
-- SELECT: joins, aggregates, subqueries, set operations, windows, CTEs, LATERAL; the same answers as ordinary tables give.
SELECT twin('a', 'id int PRIMARY KEY, k int, t text, n numeric', 'CREATE INDEX ON %s (k, id)');
SELECT twin('b', 'id int, aid int, v float8, d date, PRIMARY KEY (aid, id)');
SELECT same('INSERT INTO a SELECT i, i % 17, ''t'' || i % 100, i * 1.5 FROM generate_series(1, 2000) i');
SELECT same('INSERT INTO b SELECT i, i % 500, i / 3.0, date ''2020-01-01'' + i % 400 FROM generate_series(1, 4000) i');
SELECT same('SELECT * FROM a');
SELECT same('SELECT count(*), sum(n), min(t), max(k), avg(n) FROM a');
SELECT same('SELECT k, count(*), sum(n) FROM a GROUP BY k ORDER BY k');
SELECT same('SELECT * FROM a JOIN b ON b.aid = a.id WHERE a.k = 3');
SELECT same('SELECT * FROM a LEFT JOIN b ON b.aid = a.id AND b.v > 1000 WHERE a.k = 3');
SELECT same('SELECT a.id, x.s FROM a, LATERAL (SELECT sum(v) s FROM b WHERE b.aid = a.id) x WHERE a.id BETWEEN 490 AND 510');
SELECT same('SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.aid = a.id AND d > ''2020-06-01'')');
SELECT same('SELECT id FROM a WHERE id NOT IN (SELECT aid FROM b) AND k < 3');
SELECT same('SELECT id, row_number() OVER (PARTITION BY k ORDER BY id DESC) FROM a WHERE id < 100');
SELECT same('WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT a.id + 500 FROM r JOIN a ON a.id = r.i WHERE a.id < 1500) SELECT * FROM r');
SELECT same('SELECT k FROM a WHERE id < 50 UNION SELECT aid FROM b WHERE id < 20 EXCEPT SELECT 3');
SELECT same('SELECT DISTINCT k FROM a ORDER BY k DESC');
SELECT same('SELECT DISTINCT ON (k) k, id FROM a ORDER BY k, id DESC');
SELECT same('SELECT * FROM a WHERE t = ''t5'' OR id = 7 OR k = 100');
SELECT same('SELECT a1.id, a2.id FROM a a1 JOIN a a2 ON a1.k = a2.k AND a1.id = a2.id + 17 WHERE a1.id < 300');
SELECT same('SELECT * FROM a FULL JOIN b ON a.id = b.id WHERE a.id IS NULL OR b.id < 5');
SELECT same('SELECT (SELECT max(v) FROM b WHERE aid = a.id) FROM a WHERE id <= 20 ORDER BY id');
SELECT same('SELECT a FROM a WHERE id = 5');
SELECT same('SELECT a.*, b.* FROM a, b WHERE a.id = b.aid AND b.id = 77');
SELECT same('SELECT * FROM a ORDER BY n DESC LIMIT 5 OFFSET 3');
SELECT same('SELECT * FROM a ORDER BY k, id LIMIT 7');
SELECT same('SELECT * FROM a WHERE k = 5 ORDER BY id DESC LIMIT 3');
SELECT same('SELECT max(id) FROM a WHERE k = 4');
SELECT same('SELECT min(id), max(id) FROM a');
SELECT same('SELECT max(id) FROM a WHERE k = 400');
-- system columns
SELECT tableoid::regclass, ctid IS NOT NULL AS ctid, xmin::text::bigint > 0 AS xmin, xmax, cmax IS NOT NULL AS cmax FROM a WHERE id = 1;
SELECT id FROM a WHERE ctid = (SELECT ctid FROM a WHERE id = 77);
-- a statement does not see what it writes, the next one of the transaction does
SELECT same('WITH n AS (INSERT INTO a VALUES (5000, 1) RETURNING id) SELECT count(*) FROM a, n WHERE a.id >= n.id');
SELECT same('INSERT INTO a SELECT id + 10000, k, t, n FROM a');
SELECT same('SELECT count(*) FROM a');
-- prepared statements, generic and custom plans
PREPARE q(int, int) AS SELECT id FROM a WHERE k = $1 AND id < $2 ORDER BY id;
SET plan_cache_mode = force_generic_plan;
EXECUTE q(3, 60);
EXECUTE q(4, 30);
EXECUTE q(NULL, 30);
SET plan_cache_mode = force_custom_plan;
EXECUTE q(3, 60);
RESET plan_cache_mode;
ANALYZE a;
ANALYZE b;
SELECT relname, reltuples FROM pg_class WHERE oid IN ('a'::regclass, 'b'::regclass) ORDER BY 1;
SELECT attname, n_distinct, null_frac FROM pg_stats WHERE schemaname = 'fdw_select' AND tablename = 'a' AND attname IN ('id', 'k') ORDER BY 1;
SELECT same('SELECT * FROM a JOIN b ON b.aid = a.id WHERE a.k = 3');
SELECT same('SELECT count(*) FROM a a1, a a2 WHERE a1.id = a2.k');
SET default_transaction_isolation = 'serializable';
SELECT same('SELECT count(*), sum(n) FROM a WHERE k = 3');
BEGIN;
INSERT INTO a VALUES (-1);
SELECT k FROM a WHERE id = -1;
-- the row is the transaction's own: only the range of keys is locked, as a page of the index
SELECT locktype, count(*) FROM pg_locks WHERE mode = 'SIReadLock' GROUP BY 1 ORDER BY 1;
ROLLBACK;
RESET default_transaction_isolation;
SELECT (mot.check('a')).rows AS a, (mot.check('b')).rows AS b;
