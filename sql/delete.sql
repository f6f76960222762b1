-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_delete;
CREATE SCHEMA fdw_delete_heap;
SET search_path = fdw_delete, pg_catalog;
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
DECLARE mine text := fdw_delete.outcome('fdw_delete', statement); heap text := fdw_delete.outcome('fdw_delete_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_delete, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_delete.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_delete_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_delete.' || name);
    EXECUTE format(i, 'fdw_delete_heap.' || name);
  END LOOP;
END $$;
-- DELETE: in the scan node, through joins, with triggers, slots used again, savepoints.
SELECT twin('t', 'id int PRIMARY KEY, k int, v text', 'CREATE INDEX ON %s (k)');
SELECT same('INSERT INTO t SELECT i, i % 10, ''v'' || i FROM generate_series(1, 1000) i');
SELECT same('DELETE FROM t WHERE id = 7 RETURNING *');
SELECT same('DELETE FROM t WHERE id = 7 RETURNING *');
SELECT same('DELETE FROM t WHERE k = 3 AND id > 500');
SELECT same('DELETE FROM t USING t t2 WHERE t2.id = t.id + 1 AND t2.k = 5 RETURNING t.id, t2.id');
SELECT same('DELETE FROM t WHERE id IN (SELECT id FROM t WHERE v LIKE ''v9%'')');
SELECT same('DELETE FROM t WHERE NOT EXISTS (SELECT FROM t t2 WHERE t2.id = t.id + 10)');
SELECT same('TABLE t');
SELECT same('SELECT k, count(*) FROM t GROUP BY k ORDER BY k');
-- deleted keys can be inserted again, in the same transaction too
BEGIN;
DELETE FROM t WHERE id = 8;
INSERT INTO t VALUES (8, 8, 'again');
DELETE FROM t WHERE id = 8;
INSERT INTO t VALUES (8, 8, 'and again');
SAVEPOINT s;
DELETE FROM t WHERE id = 8;
SELECT count(*) FROM t WHERE id = 8;
ROLLBACK TO s;
SELECT v FROM t WHERE id = 8;
COMMIT;
SELECT v FROM t WHERE id = 8;
INSERT INTO t VALUES (8, 1, 'no');
-- rolled back
BEGIN; DELETE FROM t; SELECT count(*) FROM t; ROLLBACK;
SELECT count(*) > 0 FROM t;
-- a cursor goes on seeing what it saw
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE k = 6 ORDER BY id;
FETCH 1 FROM c;
DELETE FROM t WHERE k = 6;
FETCH 2 FROM c;
SELECT count(*) FROM t WHERE k = 6;
COMMIT;
-- triggers
CREATE TABLE log (what text);
CREATE FUNCTION veto() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.id % 2 = 0 THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fdw_delete.log VALUES (OLD::text); RETURN NULL; END $$;
CREATE TRIGGER b BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION veto();
CREATE TRIGGER a AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
DELETE FROM t WHERE id BETWEEN 20 AND 23 RETURNING id;
TABLE log;
DROP TRIGGER b ON t;
DROP TRIGGER a ON t;
-- slots are used again, old and new rows stay apart
CREATE FOREIGN TABLE c (id int PRIMARY KEY, v int) SERVER mot;
DO $$ BEGIN FOR i IN 1..50 LOOP INSERT INTO c SELECT g, i FROM generate_series(1, 100) g; DELETE FROM c; END LOOP; END $$;
SELECT count(*) FROM c;
INSERT INTO c SELECT g, 0 FROM generate_series(1, 100) g;
SELECT count(*), sum(id), sum(v) FROM c;
DELETE FROM c;
TRUNCATE c;
INSERT INTO c VALUES (1, 1);
TABLE c;
SELECT (mot.check('t')).rows AS t, (mot.check('c')).rows AS c;
