-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_update;
CREATE SCHEMA fdw_update_heap;
SET search_path = fdw_update, pg_catalog;
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
DECLARE mine text := fdw_update.outcome('fdw_update', statement); heap text := fdw_update.outcome('fdw_update_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_update, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_update.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_update_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_update.' || name);
    EXECUTE format(i, 'fdw_update_heap.' || name);
  END LOOP;
END $$;
-- UPDATE: in the scan node, through joins, with triggers, keys moved, Halloween, savepoints.
SELECT twin('t', 'id int PRIMARY KEY, k int, v text, n int NOT NULL DEFAULT 0 CHECK (n < 1000000)', 'CREATE INDEX ON %s (k)');
SELECT same('INSERT INTO t SELECT i, i % 10, ''v'' || i FROM generate_series(1, 500) i');
SELECT same('UPDATE t SET v = v || ''!'' WHERE id = 7 RETURNING *');
SELECT same('UPDATE t SET k = k + 1, n = n + id WHERE k = 3 RETURNING id, k, n');
SELECT same('UPDATE t SET n = 1 WHERE id > 490');
SELECT same('UPDATE t SET n = n');
SELECT same('UPDATE t SET n = NULL WHERE id = 1');
SELECT same('UPDATE t SET n = 1000000 WHERE id = 1');
SELECT same('UPDATE t SET id = 2 WHERE id = 1');
SELECT same('UPDATE t SET id = id + 1000');
SELECT same('UPDATE t SET k = DEFAULT, n = DEFAULT WHERE id = 1001 RETURNING *');
SELECT same('UPDATE t SET v = NULL WHERE v LIKE ''v1%'' RETURNING id');
SELECT same('UPDATE t SET (k, v) = (SELECT max(k), ''sub'' FROM t) WHERE id = 1002 RETURNING *');
SELECT same('UPDATE t SET n = (SELECT count(*) FROM t t2 WHERE t2.k = t.k) WHERE id < 1100');
SELECT same('UPDATE t SET v = t2.v FROM t t2 WHERE t2.id = t.id + 1 AND t.k = 5');
SELECT same('UPDATE t SET n = 5 WHERE k IN (SELECT k FROM t WHERE id = 1050)');
SELECT same('UPDATE t SET n = x.s FROM (SELECT k, count(*) s FROM t GROUP BY k) x WHERE x.k = t.k');
SELECT same('UPDATE t SET n = 7 FROM generate_series(1, 3) WHERE t.id = 1003 RETURNING t.*');
SELECT same('UPDATE t SET v = ''x'' WHERE id = -1');
SELECT same('UPDATE t SET n = 1 / (k - 100) WHERE k = 5');
SELECT same('UPDATE t SET n = 1 / (k - 5) WHERE k <> 5 AND k IS NOT NULL');
SELECT same('TABLE t');
-- Halloween: rows moved ahead of the scan are not met again
SELECT same('UPDATE t SET k = k + 1 WHERE k >= 0');
SELECT same('UPDATE t SET id = id + 1 WHERE id > 1499');
SELECT same('SELECT k, count(*) FROM t GROUP BY k ORDER BY k');
EXPLAIN (COSTS OFF) UPDATE t SET k = k + 1 WHERE k >= 0;
-- the index follows, and old snapshots still find the old keys
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE k = 6 ORDER BY id;
UPDATE t SET k = 400 WHERE k = 6;
SELECT count(*) FROM t WHERE k = 6;
SELECT count(*) FROM t WHERE k = 400;
FETCH 3 FROM c;
ROLLBACK;
SELECT count(*) FROM t WHERE k = 6;
SELECT count(*) FROM t WHERE k = 400;
-- several states in one transaction
BEGIN;
UPDATE t SET k = 1000 WHERE id = 1010;
SAVEPOINT a;
UPDATE t SET k = 1001 WHERE id = 1010;
SAVEPOINT b;
UPDATE t SET k = 1002, id = 9999 WHERE id = 1010;
SELECT id, k FROM t WHERE k BETWEEN 1000 AND 1002;
ROLLBACK TO b;
SELECT id, k FROM t WHERE k BETWEEN 1000 AND 1002;
RELEASE a;
COMMIT;
SELECT id, k FROM t WHERE k BETWEEN 1000 AND 1002;
SELECT id FROM t WHERE id IN (1010, 9999);
SELECT (mot.check('t')).rows AS t;
-- a key that goes and comes back
SELECT same('UPDATE t SET id = 20000 WHERE id = 1020');
SELECT same('UPDATE t SET id = 1020 WHERE id = 20000');
SELECT same('INSERT INTO t (id) VALUES (20000)');
SELECT same('INSERT INTO t (id) VALUES (1020)');
-- row triggers: BEFORE changes the row, AFTER sees old and new
CREATE TABLE log (place text, what text);
CREATE FUNCTION before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = 13 THEN RETURN NULL; END IF; NEW.v := 'by trigger'; RETURN NEW; END $$;
CREATE FUNCTION after() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fdw_update.log VALUES (TG_TABLE_SCHEMA, OLD::text || NEW::text); RETURN NULL; END $$;
CREATE TRIGGER b BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION before();
CREATE TRIGGER b BEFORE UPDATE ON fdw_update_heap.t FOR EACH ROW EXECUTE FUNCTION before();
CREATE TRIGGER a AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after();
CREATE TRIGGER a AFTER UPDATE ON fdw_update_heap.t FOR EACH ROW EXECUTE FUNCTION after();
SELECT same('UPDATE t SET n = 12 + (id = 1032)::int WHERE id BETWEEN 1030 AND 1035 RETURNING *');
SELECT count(*), count(DISTINCT what) FROM log;
-- a trigger that changes the row itself
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('UPDATE %s SET n = 3 WHERE id = %s', TG_RELID::regclass, OLD.id); RETURN NEW; END $$;
CREATE TRIGGER c BEFORE UPDATE ON t FOR EACH ROW WHEN (NEW.n = 77) EXECUTE FUNCTION meddle();
CREATE TRIGGER c BEFORE UPDATE ON fdw_update_heap.t FOR EACH ROW WHEN (NEW.n = 77) EXECUTE FUNCTION meddle();
SELECT same('UPDATE t SET n = 77 WHERE id = 1040');
-- generated columns
SELECT twin('g', 'id int PRIMARY KEY, a int, s int GENERATED ALWAYS AS (a + 1) STORED');
SELECT same('INSERT INTO g SELECT i, i FROM generate_series(1, 10) i');
SELECT same('UPDATE g SET a = a * 2 WHERE id > 5 RETURNING *');
-- partitions and inheritance
CREATE TABLE p (k int, v text) PARTITION BY LIST (k);
CREATE FOREIGN TABLE p1 PARTITION OF p FOR VALUES IN (1, 2) SERVER mot;
CREATE FOREIGN TABLE p3 PARTITION OF p FOR VALUES IN (3) SERVER mot;
CREATE TABLE p4 PARTITION OF p FOR VALUES IN (4);
INSERT INTO p SELECT i, 'v' || i FROM generate_series(1, 4) i;
UPDATE p SET v = v || '+' RETURNING tableoid::regclass, *;
UPDATE p SET k = 2 WHERE k = 1;
UPDATE p1 SET k = 3 WHERE k = 1;
UPDATE p SET k = 3 WHERE k = 4;
TABLE p ORDER BY k, v;
-- data-modifying CTEs and counts
WITH u AS (UPDATE t SET n = 0 WHERE id BETWEEN 1050 AND 1054 RETURNING id) SELECT count(*) FROM u;
WITH u AS (UPDATE t SET n = 1 WHERE id BETWEEN 1050 AND 1054) SELECT count(*) FROM t WHERE n = 1 AND id BETWEEN 1050 AND 1054;
DO $$ DECLARE n int; BEGIN UPDATE t SET n = 2 WHERE id BETWEEN 1050 AND 1053; GET DIAGNOSTICS n = ROW_COUNT; RAISE WARNING '% rows', n; END $$;
SELECT (mot.check('t')).rows AS t, (mot.check('g')).rows AS g, (mot.check('p1')).rows AS p1;

-- A plan that is older than the table's row triggers runs as on heap tables: a SQL function keeps its plans until the calling query ends.
CREATE FOREIGN TABLE older_plan (id int PRIMARY KEY, v int, t text) SERVER mot;
INSERT INTO older_plan SELECT n, n, 'text' FROM generate_series(1, 4) n;
CREATE FUNCTION older_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE FUNCTION older_ddl(n int, command text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n = 2 THEN EXECUTE command; END IF; RETURN n; END $$;
CREATE FUNCTION older_direct(int) RETURNS int LANGUAGE sql AS $$ UPDATE older_plan SET v = v + 1 WHERE id = $1 RETURNING v $$;
CREATE FUNCTION older_update(int) RETURNS int LANGUAGE sql AS $$ UPDATE older_plan SET v = v + 1 FROM generate_series(1, 4) n WHERE id = $1 AND id = n RETURNING v $$;
CREATE FUNCTION older_delete(int) RETURNS int LANGUAGE sql AS $$ DELETE FROM older_plan USING generate_series(1, 4) n WHERE id = $1 AND id = n RETURNING v $$;
SELECT older_ddl(n, 'CREATE TRIGGER made AFTER UPDATE ON older_plan FOR EACH ROW EXECUTE FUNCTION older_trigger()'), older_direct(n) FROM generate_series(1, 3) n;
SELECT older_ddl(n, 'CREATE TRIGGER made_before BEFORE UPDATE ON older_plan FOR EACH ROW EXECUTE FUNCTION older_trigger()'), older_update(n) FROM generate_series(1, 3) n;
SELECT older_ddl(n, 'CREATE TRIGGER made_delete AFTER DELETE ON older_plan FOR EACH ROW EXECUTE FUNCTION older_trigger()'), older_delete(n) FROM generate_series(1, 3) n;
-- Nor does one read an index that is gone.
CREATE INDEX older_v ON older_plan (v);
CREATE FUNCTION older_read(int) RETURNS text LANGUAGE sql AS $$ SELECT t FROM older_plan WHERE v = $1 $$;
SET enable_seqscan = off;
\set VERBOSITY sqlstate
SELECT older_ddl(n, 'DROP INDEX older_v'), older_read(n) FROM generate_series(1, 3) n;
\set VERBOSITY default
RESET enable_seqscan;
-- Nor does INSERT ... ON CONFLICT take other indexes for the one it names.
CREATE UNIQUE INDEX older_t ON older_plan (t, id);
CREATE UNIQUE INDEX older_vu ON older_plan (v);
CREATE FUNCTION older_upsert(int) RETURNS text LANGUAGE sql AS $$ INSERT INTO older_plan VALUES ($1, $1, 'new') ON CONFLICT (v) DO UPDATE SET t = 'upserted' RETURNING t $$;
\set VERBOSITY sqlstate
SELECT older_ddl(n, 'DROP INDEX older_vu'), older_upsert(n) FROM generate_series(1, 3) n;
\set VERBOSITY default
DROP FUNCTION older_read, older_upsert;
SELECT * FROM older_plan ORDER BY id;
-- One that is older than a stored generated column computes it all the same; one that assigns to a column that is gone, or of another type, since is
-- refused as on heap tables.
SELECT twin('older_columns', 'id int PRIMARY KEY, v int, t varchar(9)');
SELECT same('INSERT INTO older_columns SELECT n, n, ''t'' || n FROM generate_series(1, 4) n');
CREATE FUNCTION older_value(int) RETURNS int LANGUAGE sql AS $$ UPDATE older_columns SET v = v + 1 WHERE id = $1 RETURNING v $$;
CREATE FUNCTION older_values(int) RETURNS int LANGUAGE sql AS $$ UPDATE older_columns SET v = v + 1 FROM generate_series(1, 4) n WHERE id = $1 AND id = n RETURNING v $$;
CREATE FUNCTION older_text(int) RETURNS int LANGUAGE sql AS $$ UPDATE older_columns SET t = 'new' WHERE id = $1 RETURNING id $$;
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns ADD COLUMN g int GENERATED ALWAYS AS (v * 10) STORED''), fdw_update.older_value(n) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns ADD COLUMN h int GENERATED ALWAYS AS (v * 2) STORED NOT NULL CHECK (h < 99)''), fdw_update.older_values(n) FROM generate_series(1, 3) n');
SELECT same('SELECT * FROM older_columns');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns ADD CHECK (v < 6)''), fdw_update.older_value(4) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns ALTER t TYPE text''), fdw_update.older_text(n) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns DROP COLUMN t''), fdw_update.older_text(n) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns ADD COLUMN w int DEFAULT 5, ALTER v SET DEFAULT 1''), fdw_update.older_text(n) FROM generate_series(1, 3) n');
SELECT same('SELECT * FROM older_columns');
SELECT rows FROM mot.check('older_columns');
-- So are aggregates that are computed inside the scan.
SELECT same('ALTER TABLE older_columns ADD COLUMN c varchar(9) DEFAULT ''text''');
CREATE FUNCTION older_sum(int) RETURNS bigint LANGUAGE sql AS $$ SELECT sum(v) FROM older_columns WHERE id >= $1 $$;
CREATE FUNCTION older_groups(int) RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM older_columns WHERE id >= $1 GROUP BY w $$;
CREATE FUNCTION older_count(int) RETURNS bigint LANGUAGE sql AS $$ SELECT count(c) FROM older_columns WHERE id >= $1 $$;
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns ALTER c TYPE text''), fdw_update.older_count(n) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns DROP COLUMN c''), fdw_update.older_count(n) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns DROP COLUMN w''), fdw_update.older_groups(n) FROM generate_series(1, 3) n');
SELECT same('SELECT fdw_update.older_ddl(n, ''ALTER TABLE older_columns DROP COLUMN v CASCADE''), fdw_update.older_sum(n) FROM generate_series(1, 3) n');
DROP FUNCTION older_sum, older_groups, older_count;
DROP FUNCTION older_value, older_values, older_text;
DROP FOREIGN TABLE older_plan;
DROP FUNCTION older_trigger, older_ddl, older_direct, older_update, older_delete;
