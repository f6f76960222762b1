-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_row_locks;
CREATE SCHEMA fdw_row_locks_heap;
SET search_path = fdw_row_locks, pg_catalog;
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
DECLARE mine text := fdw_row_locks.outcome('fdw_row_locks', statement); heap text := fdw_row_locks.outcome('fdw_row_locks_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_row_locks, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_row_locks.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_row_locks_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_row_locks.' || name);
    EXECUTE format(i, 'fdw_row_locks_heap.' || name);
  END LOOP;
END $$;
-- Row locks in one session; what they do between sessions is in isolation/.
SELECT twin('t', 'id int PRIMARY KEY, v int');
SELECT twin('u', 'id int PRIMARY KEY, t int');
SELECT same('INSERT INTO t SELECT i, i FROM generate_series(1, 20) i');
SELECT same('INSERT INTO u SELECT i, i % 5 FROM generate_series(1, 20) i');
SELECT same('SELECT * FROM t WHERE id < 5 FOR UPDATE');
SELECT same('SELECT * FROM t WHERE id < 5 FOR NO KEY UPDATE');
SELECT same('SELECT * FROM t WHERE id < 5 FOR SHARE');
SELECT same('SELECT * FROM t WHERE id < 5 FOR KEY SHARE NOWAIT');
SELECT same('SELECT * FROM t WHERE id < 5 FOR UPDATE SKIP LOCKED');
SELECT same('SELECT * FROM t JOIN u ON u.t = t.id FOR UPDATE');
SELECT same('SELECT * FROM t JOIN u ON u.t = t.id FOR UPDATE OF u');
SELECT same('SELECT * FROM t LEFT JOIN u ON u.t = t.id WHERE t.id > 3 FOR UPDATE OF t');
SELECT same('SELECT * FROM (SELECT * FROM t WHERE id > 3 ORDER BY id LIMIT 3) x FOR UPDATE');
SELECT same('WITH c AS (SELECT * FROM t WHERE id > 17 FOR UPDATE) SELECT * FROM c');
SELECT same('SELECT id FROM t WHERE id > 10 ORDER BY v DESC LIMIT 3 FOR UPDATE');
SELECT same('UPDATE t SET v = v + 1 WHERE id IN (SELECT id FROM t WHERE id < 4 FOR UPDATE) RETURNING *');
SELECT same('SELECT count(*) FROM t FOR UPDATE');
CREATE VIEW w AS SELECT * FROM t WHERE v > 10;
SELECT id FROM w WHERE id > 15 ORDER BY id FOR UPDATE;
-- with an ordinary table
SELECT t.id, h.id FROM t JOIN fdw_row_locks_heap.t h USING (id) WHERE id < 3 ORDER BY 1 FOR UPDATE;
-- locks and changes of one transaction stack
BEGIN;
SELECT id FROM t WHERE id = 1 FOR KEY SHARE;
SELECT id FROM t WHERE id = 1 FOR UPDATE;
SAVEPOINT a;
UPDATE t SET v = 100 WHERE id = 1;
SELECT v FROM t WHERE id = 1 FOR SHARE;
SAVEPOINT b;
DELETE FROM t WHERE id = 1;
SELECT v FROM t WHERE id = 1 FOR UPDATE;
ROLLBACK TO b;
SELECT v FROM t WHERE id = 1 FOR UPDATE;
ROLLBACK TO a;
SELECT v FROM t WHERE id = 1 FOR UPDATE;
COMMIT;
SELECT v FROM t WHERE id = 1;
-- a locking cursor
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE id BETWEEN 5 AND 8 ORDER BY id FOR UPDATE;
FETCH 2 FROM c;
UPDATE t SET v = 500 WHERE id = 7;
FETCH 2 FROM c;
ROLLBACK;
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM (SELECT id FROM t FOR SHARE) x;
COMMIT;
BEGIN READ ONLY;
SELECT id FROM t FOR UPDATE;
ROLLBACK;
SELECT (mot.check('t')).rows AS t, (mot.check('u')).rows AS u;
