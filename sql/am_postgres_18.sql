-- What PostgreSQL 18 brought, on tables of the access method. Older servers end here.
SELECT current_setting('server_version_num')::int < 180000 AS is_older \gset
\if :is_older
  \quit
\endif
SET client_min_messages = warning;
CREATE SCHEMA am_18;
SET search_path = am_18;
-- same() runs a statement on a memory-optimized table and on its heap twin: both must give the same rows, or the same error.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text[] := '{}'; r record;
BEGIN
  IF statement ~* '^\s*select|returning' THEN
    FOR r IN EXECUTE statement LOOP found := found || r::text; END LOOP;
    -- MERGE joins by the plan that a table's size suggests.
    IF statement ~ 'MERGE' THEN found := (SELECT array_agg(row ORDER BY row COLLATE "C") FROM unnest(found) row); END IF;
  ELSE
    EXECUTE statement;
  END IF;
  RETURN array_to_string(ARRAY['ok'] || found, ' ');
EXCEPTION WHEN others THEN
  RETURN sqlstate || ' ' || sqlerrm;
END $$;
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE mine text := outcome(format(statement, 't_m', 'mot')); heap text := outcome(format(statement, 't_h', 'heap'));
BEGIN
  heap := replace(heap, 't_h', 't_m');
  RETURN CASE WHEN mine = heap THEN 'same: ' || mine ELSE 'DIFFERENT: mot ' || mine || ', heap ' || heap END;
END $$;
CREATE FUNCTION constraints(name regclass) RETURNS TABLE (conname text, definition text) LANGUAGE sql AS $$
  SELECT replace(conname, 't_h', 't_m'), contype::text || ': ' || pg_get_constraintdef(oid) || CASE WHEN convalidated THEN '' ELSE ' not validated' END
  FROM pg_constraint WHERE conrelid = name
$$;

-- RETURNING OLD and NEW.
SELECT same('CREATE TABLE %s (id int PRIMARY KEY, a int) USING %s');
SELECT same('INSERT INTO %s VALUES (1, 1), (2, 2) RETURNING old, new, old.a, new.a');
SELECT same('UPDATE %s SET a = a + 1 RETURNING old.a, new.a, old, new, id');
SELECT same('UPDATE %s t SET a = x.a FROM (VALUES (1, 10)) x(id, a) WHERE x.id = t.id RETURNING old.a, new.a, x.a');
SELECT same('UPDATE %s SET a = a + 1 WHERE id = 1 RETURNING WITH (OLD AS o, NEW AS n) o.a, n.a');
SELECT same('INSERT INTO %s VALUES (1, 5), (3, 5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING old.a, new.a, a, old IS NULL');
SELECT same('INSERT INTO %s VALUES (1, 5) ON CONFLICT (id) DO NOTHING RETURNING old.a');
SELECT same('UPDATE %s SET a = a + 1 RETURNING old.ctid <> new.ctid, old.xmin <> 0, new.xmin = pg_current_xact_id()::xid, old.tableoid = new.tableoid');
SELECT same('DELETE FROM %s WHERE id = 2 RETURNING old.a, new.a, new IS NULL, new.ctid IS NULL');
SELECT same('MERGE INTO %s t USING (VALUES (1, 7), (2, 8)) s (id, a) ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a) WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING merge_action(), old, new, t.*');
SELECT same('WITH before AS (SELECT id, ctid AS place, xmin AS maker FROM %1$s), changed AS (UPDATE %1$s SET a = a + 1 RETURNING id, old.ctid AS place, old.xmin AS maker)
  SELECT count(*), count(*) FILTER (WHERE before.place = changed.place AND before.maker = changed.maker) FROM before JOIN changed USING (id)');
CREATE FUNCTION doubled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.a * 2; RETURN NEW; END $$;
SELECT same('CREATE TRIGGER doubled BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION doubled()');
SELECT same('UPDATE %s SET a = a + 1 RETURNING old.a, new.a');
SELECT same('INSERT INTO %s VALUES (1, 5), (4, 5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING old.a, new.a');
SELECT same('SELECT * FROM %s ORDER BY id');
-- An update that moves a row to a partition of the other kind.
CREATE TABLE moved (k int, v int) PARTITION BY LIST (k);
CREATE TABLE moved1 PARTITION OF moved FOR VALUES IN (1) USING mot;
CREATE TABLE moved2 PARTITION OF moved FOR VALUES IN (2) USING heap;
INSERT INTO moved VALUES (1, 1), (2, 2);
UPDATE moved SET k = 3 - k RETURNING old.tableoid::regclass, old.k, new.tableoid::regclass, new.k, v;
MERGE INTO moved USING (VALUES (1, 1), (2, 5)) s (v, n) ON moved.v = s.v WHEN MATCHED THEN UPDATE SET k = 3 - k, v = s.n WHEN NOT MATCHED THEN INSERT VALUES (1, s.v) RETURNING merge_action(), old, new;
DROP TABLE t_m, t_h;

-- NOT NULL is a constraint with a name, that may wait for its validation or not be inherited.
SELECT same('CREATE TABLE %s (a int, b int CONSTRAINT named NOT NULL, c int NOT NULL, d int, e int UNIQUE, PRIMARY KEY (a, b)) USING %s');
SELECT * FROM constraints('t_m') ORDER BY 1;
SELECT same('INSERT INTO %s VALUES (1, 1, 1, NULL, 1)');
SELECT same('ALTER TABLE %s ALTER a DROP NOT NULL');
SELECT same('ALTER TABLE %s DROP CONSTRAINT named');
SELECT same('ALTER TABLE %s ALTER d SET NOT NULL');
SELECT same('ALTER TABLE %s ADD CONSTRAINT d_there NOT NULL d');
SELECT same('ALTER TABLE %s ADD CONSTRAINT d_there NOT NULL d NOT VALID');
SELECT same('CREATE INDEX ON %s (d)');
SELECT same('INSERT INTO %s VALUES (2, 2, 2, NULL, 2)');
SELECT same('ALTER TABLE %s VALIDATE CONSTRAINT d_there');
SET enable_seqscan = off;
SELECT same('SELECT * FROM %s WHERE d IS NULL');
SELECT same('UPDATE %s SET e = 11 WHERE d IS NULL');
SELECT same('UPDATE %s SET d = 1 WHERE d IS NULL');
SELECT same('ALTER TABLE %s VALIDATE CONSTRAINT d_there');
SELECT same('SELECT * FROM %s WHERE d IS NULL');
SELECT same('SELECT * FROM %s WHERE d = 1');
RESET enable_seqscan;
SELECT same('ALTER TABLE %1$s DROP CONSTRAINT %1$s_pkey');
SELECT same('INSERT INTO %s VALUES (NULL, 2, 2, 2, 2)');
SELECT same('ALTER TABLE %s ALTER a DROP NOT NULL');
SELECT same('INSERT INTO %s VALUES (NULL, 2, 2, 2, 2)');
SELECT same('ALTER TABLE %s ADD PRIMARY KEY (e)');
SELECT same('ALTER TABLE %s ADD UNIQUE (b), ADD CONSTRAINT alone NOT NULL a NO INHERIT NOT VALID');
SELECT same('SELECT * FROM %s ORDER BY e');
SELECT * FROM constraints('t_m') EXCEPT SELECT * FROM constraints('t_h');
SELECT * FROM constraints('t_h') EXCEPT SELECT * FROM constraints('t_m');
SELECT rows FROM mot.check('t_m');
-- Conditions and references that are not enforced.
SELECT same('ALTER TABLE %s ADD CONSTRAINT big CHECK (c > 100) NOT ENFORCED');
SELECT same('UPDATE %s SET c = c + 1 RETURNING c');
SELECT same('CREATE TABLE %1$s_from (e int REFERENCES %1$s (e) NOT ENFORCED) USING %2$s');
SELECT same('INSERT INTO %s_from VALUES (999)');
SELECT same('ALTER TABLE %1$s_from ALTER CONSTRAINT %1$s_from_e_fkey ENFORCED');
SELECT same('DELETE FROM %s_from');
SELECT same('ALTER TABLE %1$s_from ALTER CONSTRAINT %1$s_from_e_fkey ENFORCED');
SELECT same('INSERT INTO %s_from VALUES (999)');
SELECT same('INSERT INTO %s_from VALUES (2)');
SELECT same('DELETE FROM %s WHERE e = 2');
SELECT same('ALTER TABLE %1$s_from ALTER CONSTRAINT %1$s_from_e_fkey NOT ENFORCED');
SELECT same('DELETE FROM %s WHERE e = 2');
DROP TABLE t_m_from, t_h_from, t_m, t_h;
-- By way of a parent.
SELECT same('CREATE TABLE %s (a int, b int)');
SELECT same('CREATE TABLE %1$s_child () INHERITS (%1$s) USING %2$s');
SELECT same('CREATE INDEX ON %s_child (a)');
SELECT same('INSERT INTO %s_child VALUES (NULL, 1)');
SELECT same('ALTER TABLE %s ADD CONSTRAINT later NOT NULL a NOT VALID');
SELECT same('INSERT INTO %s_child VALUES (NULL, 1)');
SELECT same('ALTER TABLE %s VALIDATE CONSTRAINT later');
SELECT same('DELETE FROM %s_child');
SELECT same('ALTER TABLE %s VALIDATE CONSTRAINT later');
SELECT same('ALTER TABLE %s ADD CONSTRAINT alone NOT NULL b NO INHERIT, ALTER CONSTRAINT alone INHERIT');
SELECT same('INSERT INTO %s_child VALUES (1, NULL)');
SELECT same('ALTER TABLE %s ALTER CONSTRAINT alone INHERIT');
SELECT same('INSERT INTO %s_child VALUES (1, NULL)');
DROP TABLE t_m, t_h CASCADE;

-- Keys of periods need a GiST index.
CREATE TABLE t_m (k int4range, a int4range, PRIMARY KEY (k, a WITHOUT OVERLAPS)) USING mot;
CREATE TABLE t_m (k int4range, a int4range) USING mot;
ALTER TABLE t_m ADD UNIQUE (k, a WITHOUT OVERLAPS);
CREATE TABLE t_h (k int4range, a int4range, PRIMARY KEY (k, a WITHOUT OVERLAPS)) USING heap;
ALTER TABLE t_h SET ACCESS METHOD mot;
-- A memory-optimized table can refer to one.
ALTER TABLE t_m ADD FOREIGN KEY (k, PERIOD a) REFERENCES t_h (k, PERIOD a);
INSERT INTO t_h VALUES ('[1,1]', '[1,10)'), ('[1,1]', '[10,20)');
INSERT INTO t_m VALUES ('[1,1]', '[2,15)');
INSERT INTO t_m VALUES ('[1,1]', '[2,25)');
DELETE FROM t_h WHERE a = '[1,10)';
UPDATE t_h SET a = '[1,12)' WHERE a = '[1,10)';
UPDATE t_h SET a = '[2,10)' WHERE a = '[1,10)';
DROP TABLE t_m, t_h;

-- Columns that are computed when they are read.
SELECT same('CREATE TABLE %s (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2), w text GENERATED ALWAYS AS (''w'' || a) VIRTUAL NOT NULL,
  s int GENERATED ALWAYS AS (a * 3) STORED, CONSTRAINT small CHECK (v < 100)) USING %s');
SELECT same('INSERT INTO %s (id, a) SELECT i, i FROM generate_series(1, 5) i');
SELECT same('INSERT INTO %s (id, a) VALUES (6, 50)');
SELECT same('INSERT INTO %s (id, a) VALUES (6, NULL)');
SELECT same('INSERT INTO %s (id, a, v) VALUES (6, 1, 1)');
SELECT same('INSERT INTO %s (id, a) VALUES (6, 6) RETURNING *');
SELECT same('UPDATE %s SET a = a + 10 WHERE v = 4 RETURNING *, old.v, new.v');
SELECT same('UPDATE %s SET a = 50 WHERE id = 1');
SELECT same('UPDATE %s SET v = DEFAULT, id = 7 WHERE id = 6 RETURNING v, id');
SELECT same('DELETE FROM %s WHERE w = ''w3'' RETURNING *');
SELECT same('SELECT t, t.v, (SELECT max(v) FROM %1$s) FROM %1$s t WHERE v > 2 ORDER BY id');
SELECT same('SELECT count(*), sum(x.v) FROM %1$s x JOIN %1$s y ON x.v = y.v');
SELECT same('INSERT INTO %s AS t (id, a) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET a = excluded.a + t.v RETURNING *');
SELECT same('INSERT INTO %s (id, a) VALUES (1, 60) ON CONFLICT (id) DO UPDATE SET a = excluded.a');
SELECT same('MERGE INTO %s t USING (VALUES (1, 8), (9, 9)) s (id, a) ON t.id = s.id AND t.v < 1000 WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a) RETURNING merge_action(), old.v, new.v, t.*');
SELECT same('ALTER TABLE %s ADD COLUMN x int GENERATED ALWAYS AS (a + 1) VIRTUAL');
SELECT same('ALTER TABLE %s ADD COLUMN y int GENERATED ALWAYS AS (nullif(a, 4)) VIRTUAL NOT NULL');
SELECT same('ALTER TABLE %s ADD CHECK (x < 10)');
SELECT same('ALTER TABLE %s ALTER x SET NOT NULL');
SELECT same('CREATE INDEX ON %s (v)');
SELECT same('ALTER TABLE %s ADD UNIQUE (v)');
SELECT same('ALTER TABLE %s DROP CONSTRAINT small');
SELECT same('ALTER TABLE %s ALTER v SET EXPRESSION AS (a * 5)');
SELECT same('CREATE INDEX ON %s (s)');
SELECT same('ALTER TABLE %s ALTER s SET EXPRESSION AS (a * 7)');
SELECT same('ALTER TABLE %s ALTER a TYPE bigint');
SELECT same('ALTER TABLE %s ALTER v TYPE bigint');
SELECT same('SELECT * FROM %s ORDER BY id');
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% old % new %', TG_WHEN, old, new; RETURN new; END $$;
SELECT same('CREATE TRIGGER before BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION note()');
SELECT same('CREATE TRIGGER after AFTER UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION note()');
SELECT same('UPDATE %s t SET a = a + 1 WHERE id = 5 RETURNING t, old.v');
COPY t_m (id, a) FROM stdin;
201	1
\.
COPY (SELECT * FROM t_m WHERE id = 201) TO stdout;
ANALYZE t_m;
SELECT attname FROM pg_stats WHERE tablename = 't_m' ORDER BY 1;
ALTER TABLE t_m SET ACCESS METHOD heap;
ALTER TABLE t_m SET ACCESS METHOD mot;
DELETE FROM t_m WHERE id = 201;
SELECT same('SELECT * FROM %s ORDER BY id');
SELECT rows FROM mot.check('t_m');
DROP TABLE t_m, t_h;

-- Again in a procedure, where statements are compiled.
CREATE TABLE v (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2), CONSTRAINT small CHECK (v < 100)) USING mot;
CREATE PROCEDURE again() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 101..104 LOOP
    BEGIN
      INSERT INTO v (id, a) VALUES (i, CASE WHEN i = 104 THEN 60 ELSE i - 90 END);
    EXCEPTION WHEN check_violation THEN
      RAISE WARNING '%: %', i, sqlerrm;
    END;
  END LOOP;
  FOR i IN 101..104 LOOP
    BEGIN
      UPDATE v SET a = CASE WHEN i = 103 THEN 60 ELSE i - 91 END WHERE id = i;
    EXCEPTION WHEN check_violation THEN
      RAISE WARNING '%: %', i, sqlerrm;
    END;
  END LOOP;
END $$;
CALL again();
SELECT * FROM v ORDER BY id;
DROP TABLE v;

-- Comparisons of rows are conditions of the index.
CREATE TABLE ro (day int NOT NULL, id int, title text COLLATE "C", PRIMARY KEY (day, id)) USING mot;
INSERT INTO ro SELECT n % 3, n, 'title ' || n % 10 FROM generate_series(1, 3000) n;
CREATE INDEX ro_titles ON ro (title DESC, day DESC, id DESC);
CREATE INDEX ro_mixed ON ro (id, title DESC);
CREATE TABLE ro_heap AS SELECT * FROM ro;
ANALYZE ro;
CREATE FUNCTION removed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
    IF line ~ 'Removed|Index Cond|Index Searches|Scan' THEN RETURN NEXT trim(line); END IF;
  END LOOP;
END $$;
SELECT removed('SELECT day, id FROM ro WHERE (day, id) > (1, 2500) ORDER BY day, id LIMIT 3');
SELECT day, id FROM ro WHERE (day, id) > (1, 2500) ORDER BY day, id LIMIT 3;
SELECT removed('SELECT day, id FROM ro WHERE (1, 2500) >= (day, id) ORDER BY day DESC, id DESC LIMIT 3');
SELECT day, id FROM ro WHERE (1, 2500) >= (day, id) ORDER BY day DESC, id DESC LIMIT 3;
SELECT removed('SELECT title, day, id FROM ro WHERE (title, day, id) < (''title 4'', 1, 1000) ORDER BY title DESC, day DESC, id DESC LIMIT 3');
SELECT title, day, id FROM ro WHERE (title, day, id) < ('title 4', 1, 1000) ORDER BY title DESC, day DESC, id DESC LIMIT 3;
SELECT removed('SELECT title, day, id FROM ro WHERE title = ''title 4'' AND (day, id) <= (1, 1000) ORDER BY day DESC, id DESC LIMIT 3');
SELECT title, day, id FROM ro WHERE title = 'title 4' AND (day, id) <= (1, 1000) ORDER BY day DESC, id DESC LIMIT 3;
SELECT removed('SELECT id, title FROM ro WHERE (id, title) >= (2997, ''title 7'') ORDER BY id');
SELECT id, title FROM ro WHERE (id, title) >= (2997, 'title 7') ORDER BY id;
-- All comparisons of some rows, with NULL, both directions, partly in the index, with a parameter: heap is the oracle.
CREATE FUNCTION compared(pair text) RETURNS TABLE (op text, mine bigint, heap bigint) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH op IN ARRAY ARRAY['<', '<=', '>', '>=', '=', '<>'] LOOP
    SET LOCAL enable_seqscan = off;
    EXECUTE format('SELECT count(*) FROM ro WHERE %s', format(pair, op)) INTO mine;
    EXECUTE format('SELECT count(*) FROM ro_heap WHERE %s', format(pair, op)) INTO heap;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT pair, op, mine FROM unnest(ARRAY['(day, id) %s (1, 2500)', '(1, 2500) %s (day, id)', '(day, id) %s (1, NULL)', '(day, id) %s (NULL, 1)', '(id, day) %s (2500, 1)',
    '(title, id) %s (''title 4'', 1000)', '(title, day, id) %s (''title 4'', 1, 1000)', '(id, title) %s (1500, ''title 0'')', '(id, title, day) %s (1500, ''title 0'', 0)',
    '(day, id) %s (1, 2500::bigint)', '(day, id) %s (1::smallint, 2500.5)', '(day, day) %s (1, 1)', '(day, id) %s (1, 99999999999)']) pair, compared(pair) WHERE mine <> heap OR pair LIKE '(day, id) \%s (1, 2500)';
PREPARE page (int, int) AS SELECT day, id FROM ro WHERE (day, id) > ($1, $2) ORDER BY day, id LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXECUTE page (1, 100);
EXECUTE page (2, NULL);
EXECUTE page (NULL, 2);
EXPLAIN (COSTS OFF) EXECUTE page (1, 100);
RESET plan_cache_mode;
DEALLOCATE page;
SELECT y.day, y.id FROM (VALUES (0, 2990), (2, 2995)) x (day, id), LATERAL (SELECT * FROM ro WHERE (ro.day, ro.id) >= (x.day, x.id) ORDER BY day, id LIMIT 2) y ORDER BY 1, 2;
-- A condition behind a column without one is applied inside the index scan; searches are counted.
SET enable_seqscan = off;
SELECT removed('SELECT * FROM ro WHERE id = 77 AND title = ''title 7''');
SELECT removed('SELECT * FROM ro WHERE day IN (0, 2) AND id = 77');
SELECT count(*) FROM ro WHERE day < 5 AND id = 77;
SET enable_indexscan = on;
RESET enable_seqscan;

-- Pruning as the executor starts leaves relations out: what was planned for the others is theirs.
CREATE TABLE parted (k int, v int) PARTITION BY LIST (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES IN (1) USING heap;
CREATE TABLE parted2 PARTITION OF parted FOR VALUES IN (2) USING mot;
CREATE TABLE parted3 PARTITION OF parted FOR VALUES IN (3) USING mot;
CREATE FUNCTION tell_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING '% of %', TG_OP, OLD; RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER tell BEFORE UPDATE OR DELETE ON parted3 FOR EACH ROW EXECUTE FUNCTION tell_row();
INSERT INTO parted VALUES (1, 1), (2, 2), (3, 3);
SET my.k = '2';
UPDATE parted SET v = v + 1 WHERE k = current_setting('my.k')::int RETURNING *;
DELETE FROM parted WHERE k = current_setting('my.k')::int RETURNING *;
SET my.k = '3';
UPDATE parted SET v = v + 1 WHERE k = current_setting('my.k')::int RETURNING *;
DELETE FROM parted WHERE k = current_setting('my.k')::int RETURNING *;
SET plan_cache_mode = force_generic_plan;
INSERT INTO parted VALUES (2, 2), (3, 3);
PREPARE change (int) AS UPDATE parted SET v = v + 1 WHERE k = $1 RETURNING *;
EXECUTE change (3);
EXECUTE change (2);
EXECUTE change (1);
DEALLOCATE change;
RESET plan_cache_mode;
RESET my.k;
DROP TABLE parted;
DROP FUNCTION tell_row;

-- ON CONFLICT opens the partitions that rows come to, and locks no other.
CREATE TABLE oc (a int, b int, n int DEFAULT 0, PRIMARY KEY (a, b)) PARTITION BY LIST (a);
CREATE TABLE oc1 PARTITION OF oc FOR VALUES IN (1) USING mot;
CREATE TABLE oc2 PARTITION OF oc FOR VALUES IN (2) USING mot;
BEGIN;
INSERT INTO oc VALUES (1, 1), (1, 2) ON CONFLICT (a, b) DO UPDATE SET n = oc.n + 1;
INSERT INTO oc VALUES (1, 1) ON CONFLICT (a, b) DO UPDATE SET n = oc.n + 1 RETURNING old.n, new.n;
SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation IN ('oc1'::regclass, 'oc2'::regclass, 'oc2_pkey'::regclass) ORDER BY 1, 2;
COMMIT;

-- Statistics views, and ANALYZE by read streams.
CREATE TABLE st (id int PRIMARY KEY, v int) USING mot;
INSERT INTO st SELECT g, g % 10 FROM generate_series(1, 10000) g;
VACUUM ANALYZE st;
SELECT pg_stat_force_next_flush();
SELECT vacuum_count, analyze_count, total_vacuum_time >= 0 AS vacuumed, total_analyze_time > 0 AS analyzed FROM pg_stat_user_tables WHERE relname = 'st' AND schemaname = 'am_18';
SELECT reltuples FROM pg_class WHERE oid = 'st'::regclass;
SELECT n_distinct FROM pg_stats WHERE tablename = 'st' AND attname = 'v' AND schemaname = 'am_18';
SELECT count(*) BETWEEN 1 AND 9999 AS sampled FROM st TABLESAMPLE BERNOULLI (30) REPEATABLE (1);
SELECT count(*) BETWEEN 1 AND 9999 AS sampled FROM st TABLESAMPLE SYSTEM (30) REPEATABLE (1);
SELECT count(*) FROM st TABLESAMPLE SYSTEM (100);
-- A vacuum of the parent reaches children; ONLY does not.
VACUUM ONLY oc;
ANALYZE ONLY oc;
SET max_parallel_maintenance_workers = 4;
SET min_parallel_table_scan_size = 0;
CREATE INDEX st_v ON st (v);
SELECT count(*) FROM st WHERE v = 3;
-- COPY gives up when too much is wrong.
COPY st FROM stdin WITH (ON_ERROR ignore, REJECT_LIMIT 1);
20007	7
20008	eight
nine	9
\.
COPY st TO stdout WITH (FORMAT csv, HEADER) \g /dev/null
CREATE MATERIALIZED VIEW mv USING mot AS SELECT v, count(*) AS n FROM st GROUP BY v;
COPY mv TO stdout \g /dev/null
SELECT rows FROM mot.check('st');
-- Statistics as pg_dump carries them.
SELECT pg_restore_relation_stats('schemaname', 'am_18', 'relname', 'st', 'relpages', 7, 'reltuples', 4242::real);
SELECT relpages, reltuples FROM pg_class WHERE oid = 'st'::regclass;
SELECT pg_clear_relation_stats('am_18', 'st');
SET client_min_messages = error;
DROP SCHEMA am_18 CASCADE;
