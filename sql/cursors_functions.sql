-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_cursors_functions;
CREATE SCHEMA fdw_cursors_functions_heap;
SET search_path = fdw_cursors_functions, pg_catalog;
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
DECLARE mine text := fdw_cursors_functions.outcome('fdw_cursors_functions', statement); heap text := fdw_cursors_functions.outcome('fdw_cursors_functions_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_cursors_functions, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_cursors_functions.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_cursors_functions_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_cursors_functions.' || name);
    EXECUTE format(i, 'fdw_cursors_functions_heap.' || name);
  END LOOP;
END $$;
-- Cursors, functions, PL/pgSQL, prepared statements, savepoints: whoever keeps a row or comes back to a scan.
SELECT twin('t', 'id int PRIMARY KEY, k int, v text', 'CREATE INDEX ON %s (k, id)');
SELECT same('INSERT INTO t SELECT i, i % 7, ''v'' || i FROM generate_series(1, 200) i');
SELECT same('SELECT k, (SELECT string_agg(v, '','' ORDER BY id) FROM t x WHERE x.k = y.k AND x.id < 20) FROM (SELECT DISTINCT k FROM t) y ORDER BY k');
BEGIN;
DECLARE a SCROLL CURSOR FOR SELECT id FROM t WHERE k = 3 ORDER BY id;
FETCH 2 FROM a;
FETCH LAST FROM a;
FETCH PRIOR FROM a;
FETCH FIRST FROM a;
FETCH RELATIVE 3 FROM a;
MOVE BACKWARD ALL IN a;
FETCH 1 FROM a;
DECLARE b NO SCROLL CURSOR FOR SELECT id FROM t;
FETCH 1 FROM b;
FETCH BACKWARD 1 FROM b;
ROLLBACK;
-- insensitive to later changes of the same transaction; WITH HOLD lives on
BEGIN;
INSERT INTO t VALUES (1000, 3, 'mine');
DECLARE c CURSOR FOR SELECT id, v FROM t WHERE k = 3 AND id > 190 ORDER BY id;
DECLARE h CURSOR WITH HOLD FOR SELECT id, v FROM t WHERE k = 3 AND id > 190 ORDER BY id;
UPDATE t SET v = 'changed' WHERE k = 3;
DELETE FROM t WHERE id = 1000;
FETCH ALL FROM c;
SELECT count(*) FROM t WHERE v = 'changed';
COMMIT;
FETCH ALL FROM h;
CLOSE h;
-- a cursor over a savepoint that is rolled back
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t WHERE id BETWEEN 1 AND 4 ORDER BY id;
FETCH 1 FROM c;
SAVEPOINT s;
UPDATE t SET v = 'gone' WHERE id BETWEEN 1 AND 4;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 2 FROM c;
COMMIT;
-- WHERE CURRENT OF, and rows by their ctid
SELECT twin('cu', 'id int PRIMARY KEY, v text');
SELECT same('INSERT INTO cu SELECT i, ''v'' || i FROM generate_series(1, 10) i');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu ORDER BY id;
DECLARE s CURSOR FOR SELECT * FROM cu;
DECLARE f CURSOR FOR SELECT * FROM cu ORDER BY id DESC FOR UPDATE;
SAVEPOINT s;
UPDATE cu SET v = 'early' WHERE CURRENT OF s;
ROLLBACK TO s;
FETCH 2 FROM s;
FETCH 1 FROM f;
UPDATE cu SET v = v || ' s' WHERE CURRENT OF s RETURNING *;
UPDATE cu SET v = v || ' f' WHERE CURRENT OF f RETURNING *;
UPDATE cu SET v = v || ' f again' WHERE CURRENT OF f RETURNING *;
FETCH 1 FROM f;
DELETE FROM cu WHERE CURRENT OF f RETURNING *;
DELETE FROM cu WHERE CURRENT OF f RETURNING *;
FETCH ALL FROM s;
SAVEPOINT s;
UPDATE cu SET v = 'late' WHERE CURRENT OF s;
ROLLBACK TO s;
UPDATE cu SET v = 'none' WHERE CURRENT OF nope;
ROLLBACK TO s;
DECLARE j CURSOR FOR SELECT cu.id FROM cu JOIN t USING (id);
FETCH 1 FROM j;
UPDATE cu SET v = 'join' WHERE CURRENT OF j;
ROLLBACK TO s;
SELECT * FROM cu ORDER BY id;
ROLLBACK;
SELECT same($q$DO $d$
DECLARE c CURSOR FOR SELECT * FROM cu WHERE id < 6 FOR UPDATE; d refcursor; r record;
BEGIN
  FOR r IN c LOOP
    IF r.id % 2 = 0 THEN UPDATE cu SET v = 'even' WHERE CURRENT OF c; ELSE DELETE FROM cu WHERE CURRENT OF c; END IF;
  END LOOP;
  OPEN d FOR SELECT * FROM cu WHERE id = 7 FOR UPDATE;
  FETCH d INTO r;
  UPDATE cu SET v = 'by refcursor' WHERE CURRENT OF d;
END $d$$q$);
SELECT same('SELECT * FROM cu ORDER BY id');
SELECT * FROM cu ORDER BY id;
-- Declared SCROLL, a cursor keeps its rows in a node above the scan. Errors name it, and from 16 on its name is not its variable's.
SELECT same($q$DO $d$
DECLARE c SCROLL CURSOR FOR SELECT * FROM cu WHERE id > 4 ORDER BY id; r record;
BEGIN
  OPEN c;
  FETCH c INTO r;
  UPDATE cu SET v = 'scrolled ' || r.id WHERE CURRENT OF c;
  MOVE RELATIVE 2 FROM c;
  FETCH c INTO r;
  UPDATE cu SET v = 'scrolled ' || r.id WHERE CURRENT OF c;
  FETCH c INTO r;
  DELETE FROM cu WHERE CURRENT OF c;
  UPDATE cu SET v = 'deleted ' || r.id WHERE CURRENT OF c;
  CLOSE c;
END $d$$q$);
SELECT same('SELECT * FROM cu ORDER BY id');
SELECT same($q$DO $d$
DECLARE c SCROLL CURSOR FOR SELECT * FROM cu; r record;
BEGIN
  c := 'c'; OPEN c;
  FETCH LAST FROM c INTO r;
  MOVE NEXT FROM c;
  UPDATE cu SET v = 'beyond' WHERE CURRENT OF c;
END $d$$q$);
SELECT same($q$DO $d$
DECLARE c SCROLL CURSOR FOR SELECT x.* FROM cu x JOIN t USING (id); r record;
BEGIN
  c := 'c'; OPEN c;
  FETCH c INTO r;
  UPDATE cu SET v = 'joined' WHERE CURRENT OF c;
END $d$$q$);
-- Moved backward, it is not where the scan is.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM cu ORDER BY id;
FETCH 3 FROM c;
FETCH PRIOR FROM c;
SAVEPOINT s;
UPDATE cu SET v = 'back' WHERE CURRENT OF c;
ROLLBACK TO s;
FETCH 3 FROM c;
UPDATE cu SET v = v || ' and on' WHERE CURRENT OF c RETURNING *;
FETCH NEXT FROM c;
ROLLBACK;
EXPLAIN (COSTS OFF) UPDATE cu SET v = 'x' WHERE CURRENT OF c;
EXPLAIN (COSTS OFF) SELECT * FROM cu WHERE ctid = '(0,8193)';
EXPLAIN (COSTS OFF) SELECT * FROM cu WHERE ctid = '(0,8193)' AND id = 2;
EXPLAIN (COSTS OFF) SELECT * FROM cu a JOIN cu b ON a.ctid = b.ctid;
SELECT ctid AS place FROM cu WHERE id = 2 \gset
SELECT id, v FROM cu WHERE ctid = :'place';
SELECT ctid, * FROM cu WHERE '(0,7)' = ctid AND v <> 'by refcursor';
SELECT count(*) FROM cu WHERE ctid = '(4000000,7)';
SELECT count(*) FROM cu WHERE ctid = NULL::tid;
SELECT count(*) FROM cu WHERE ctid = (SELECT max(ctid) FROM cu);
PREPARE by_ctid AS UPDATE cu SET v = 'by ctid' WHERE ctid = $1 RETURNING *;
EXECUTE by_ctid (:'place');
EXECUTE by_ctid ('(0,1)');
SELECT same('UPDATE cu SET v = v || ''!'' WHERE ctid = ANY (ARRAY(SELECT ctid FROM cu)) RETURNING id');
-- A cursor over a range of tuple ids turns round behind its last row, and before its first.
CREATE TABLE cu_range (id int, v text) USING mot;
INSERT INTO cu_range SELECT i, 'row' FROM generate_series(1, 4) i;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL jit = off;
EXPLAIN (COSTS OFF) SELECT id FROM cu_range WHERE ctid >= '(0,1)' AND id < 4;
DECLARE c SCROLL CURSOR FOR SELECT id FROM cu_range WHERE ctid >= '(0,1)' AND id < 4;
FETCH ALL FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
UPDATE cu_range SET v = 'last' WHERE CURRENT OF c RETURNING id, v;
FETCH BACKWARD ALL FROM c;
FETCH NEXT FROM c;
FETCH ABSOLUTE -2 FROM c;
ROLLBACK;
DROP TABLE cu_range;
-- a cursor over partitions, of both kinds
CREATE TABLE cp (id int, v text) PARTITION BY LIST (id);
CREATE FOREIGN TABLE cp1 PARTITION OF cp FOR VALUES IN (1) SERVER mot;
CREATE TABLE cp2 PARTITION OF cp FOR VALUES IN (2);
INSERT INTO cp VALUES (1, 'one'), (2, 'two');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cp FOR UPDATE;
FETCH 1 FROM c;
UPDATE cp SET v = 'first' WHERE CURRENT OF c RETURNING *;
FETCH 1 FROM c;
UPDATE cp SET v = 'second' WHERE CURRENT OF c RETURNING *;
COMMIT;
SELECT (mot.check('cu')).rows AS cu, (mot.check('cp1')).rows AS cp1;
-- loops that change what they read
CREATE FUNCTION loops() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; n int := 0; s bigint := 0; one t;
BEGIN
  FOR r IN SELECT * FROM t WHERE k = 5 ORDER BY id LOOP
    UPDATE t SET k = 6, v = r.v || '*' WHERE id = r.id;
    INSERT INTO t VALUES (r.id + 5000, 5, 'new');
    n := n + 1;
  END LOOP;
  SELECT sum(id) INTO s FROM t WHERE k = 5;
  SELECT * INTO STRICT one FROM t WHERE id = 5005;
  BEGIN
    INSERT INTO t VALUES (5005, 1, 'dup');
  EXCEPTION WHEN unique_violation THEN
    n := n + 1000;
  END;
  BEGIN
    UPDATE t SET k = 99;
    RAISE EXCEPTION 'back';
  EXCEPTION WHEN others THEN
    n := n + (SELECT count(*) FROM t WHERE k = 99);
  END;
  RETURN n || ' ' || s || ' ' || one.v;
END $$;
SELECT loops();
SELECT count(*), sum(k) FROM t;
-- set-returning and SQL functions, inlined or not
CREATE FUNCTION by_k(int) RETURNS SETOF t STABLE LANGUAGE sql AS 'SELECT * FROM t WHERE k = $1';
CREATE FUNCTION volatile_count() RETURNS bigint VOLATILE LANGUAGE sql AS 'SELECT count(*) FROM t';
CREATE FUNCTION stable_count() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM t';
SELECT count(*) FROM by_k(2);
SELECT id FROM by_k(2) WHERE id < 20 ORDER BY id;
INSERT INTO t SELECT 9000 + i, -1, volatile_count()::text || ' ' || stable_count() FROM generate_series(1, 3) i;
SELECT id, v FROM t WHERE id > 9000 ORDER BY id;
-- procedures that commit
CREATE PROCEDURE commits() LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..5 LOOP INSERT INTO t VALUES (10000 + i, 0, 'p'); IF i % 2 = 0 THEN COMMIT; ELSE ROLLBACK; END IF; END LOOP; END $$;
CALL commits();
SELECT id FROM t WHERE id > 10000 ORDER BY id;
-- rescans: correlated subqueries, nested loops, LATERAL
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
SELECT count(*) FROM t a, t b WHERE a.k = b.k AND a.id <> b.id AND a.id < 100;
SELECT count(*) FROM t a, t b WHERE a.id + 1 = b.id AND a.id < 50;
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material;
-- EXECUTE, RETURNING into, GET DIAGNOSTICS
DO $$ DECLARE n int; x text; BEGIN
  EXECUTE 'UPDATE fdw_cursors_functions.t SET v = $1 WHERE id = $2 RETURNING v' INTO x USING 'dyn', 10;
  DELETE FROM t WHERE id BETWEEN 11 AND 13; GET DIAGNOSTICS n = ROW_COUNT;
  RAISE WARNING '% %', x, n;
END $$;
-- temporary results keep their rows
CREATE TEMP TABLE kept AS SELECT * FROM t WHERE id < 100;
UPDATE t SET v = 'other' WHERE id < 100;
SELECT count(*), min(v) <> 'other' AS old FROM kept;
SELECT array_agg(t ORDER BY id) FROM t WHERE id IN (1, 2);
SELECT (mot.check('t')).rows AS t;
-- A cursor is asked on an empty table, too.
SELECT twin('cu_empty', 'id int PRIMARY KEY');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cu_empty;
DELETE FROM cu_empty WHERE CURRENT OF c;
ROLLBACK;
-- A cursor variable that is NULL is no cursor, as on heap tables.
CREATE TABLE cu_heap (id int PRIMARY KEY, v text);
DO $$ DECLARE c refcursor; BEGIN UPDATE cu_heap SET v = 'none' WHERE CURRENT OF c; END $$;
DO $$ DECLARE c refcursor; BEGIN UPDATE cu SET v = 'none' WHERE CURRENT OF c; END $$;
DO $$ DECLARE c refcursor; BEGIN DELETE FROM cu_empty WHERE CURRENT OF c; END $$;
DROP TABLE cu_heap;
