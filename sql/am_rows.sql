-- Tables of the access method: rows, their versions and tuple ids, as heap tables have them.
\set VERBOSITY terse
CREATE TABLE am_row (id int PRIMARY KEY, v int, t text) USING mot;
SELECT relkind, amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE relname = 'am_row';
SELECT amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE relname = 'am_row_pkey';
INSERT INTO am_row SELECT g, g * 10, 'row ' || g FROM generate_series(1, 5) g RETURNING *, tableoid::regclass;
SELECT * FROM am_row ORDER BY id;
UPDATE am_row SET v = v + 1 WHERE id = 2 RETURNING id, v, xmin = pg_current_xact_id()::xid AS is_own, xmax;
DELETE FROM am_row WHERE id = 3 RETURNING *;
SELECT * FROM am_row WHERE id = 3;
INSERT INTO am_row VALUES (2, 0, 'twice');
INSERT INTO am_row VALUES (2, 0, 'twice') ON CONFLICT DO NOTHING;
INSERT INTO am_row VALUES (2, 0, 'upserted'), (6, 60, 'new') ON CONFLICT (id) DO UPDATE SET t = EXCLUDED.t RETURNING id, t, xmax = 0 AS is_inserted;
SELECT count(*), sum(v) FROM am_row;
-- A changed row has another ctid, and an id remembered means no newer version.
CREATE TEMP TABLE am_remembered AS SELECT ctid AS tid FROM am_row WHERE id = 1;
SELECT id FROM am_row WHERE ctid = (SELECT tid FROM am_remembered);
UPDATE am_row SET v = v + 1 WHERE id = 1;
SELECT id FROM am_row WHERE ctid = (SELECT tid FROM am_remembered);
UPDATE am_row SET v = 0 WHERE ctid = (SELECT tid FROM am_remembered);
SELECT id FROM am_row WHERE ctid >= '(0,1)' AND ctid < '(1,1)' ORDER BY id;
SELECT count(*) FROM am_row WHERE ctid < '(0,1)';
-- OLD and NEW of deferred and of immediate triggers are the versions of the event.
CREATE FUNCTION am_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% %: % -> %', TG_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END;
  RETURN NULL;
END $$;
CREATE TRIGGER am_now AFTER INSERT OR UPDATE OR DELETE ON am_row FOR EACH ROW EXECUTE FUNCTION am_note();
CREATE CONSTRAINT TRIGGER am_later AFTER INSERT OR UPDATE OR DELETE ON am_row DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION am_note();
BEGIN;
INSERT INTO am_row VALUES (7, 0, 'a');
UPDATE am_row SET v = 1 WHERE id = 7;
SAVEPOINT s;
UPDATE am_row SET v = 100 WHERE id = 7;
ROLLBACK TO s;
UPDATE am_row SET v = 2 WHERE id = 7;
DELETE FROM am_row WHERE id = 7;
INSERT INTO am_row VALUES (7, 3, 'b');
COMMIT;
DROP TRIGGER am_now ON am_row;
DROP TRIGGER am_later ON am_row;
-- Transition tables.
CREATE FUNCTION am_sums() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE 'old %, new %', (SELECT sum(v) FROM before), (SELECT sum(v) FROM after);
  RETURN NULL;
END $$;
CREATE TRIGGER am_sums AFTER UPDATE ON am_row REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION am_sums();
UPDATE am_row SET v = v + 1 WHERE id < 5;
DROP TRIGGER am_sums ON am_row;
-- Cursors: both directions, updates of the current row.
CREATE TABLE am_scroll (id int PRIMARY KEY) USING mot;
INSERT INTO am_scroll SELECT generate_series(1, 7);
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM am_scroll;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
CLOSE c;
SET LOCAL enable_seqscan = off;
DECLARE d CURSOR FOR SELECT id FROM am_row WHERE id > 0 ORDER BY id;
FETCH 2 FROM d;
FETCH 2 FROM d;
FETCH BACKWARD 3 FROM d;
FETCH FORWARD ALL FROM d;
FETCH BACKWARD 2 FROM d;
CLOSE d;
DECLARE u CURSOR FOR SELECT id FROM am_row WHERE id = 4 FOR UPDATE;
FETCH u;
UPDATE am_row SET t = 'current' WHERE CURRENT OF u;
CLOSE u;
COMMIT;
SELECT t FROM am_row WHERE id = 4;
-- MERGE.
MERGE INTO am_row USING (VALUES (1, 'merged'), (99, 'added')) s(id, t) ON am_row.id = s.id
  WHEN MATCHED THEN UPDATE SET t = s.t
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.t);
SELECT id, t FROM am_row WHERE id IN (1, 99) ORDER BY id;
-- Savepoints, TRUNCATE and its rollback; in a transaction that made the table, too.
BEGIN;
TRUNCATE am_row;
SELECT count(*) FROM am_row;
INSERT INTO am_row VALUES (1, 1, 'after TRUNCATE');
INSERT INTO am_row VALUES (1, 1, 'twice');
ROLLBACK;
SELECT count(*) FROM am_row;
BEGIN;
CREATE TABLE am_fresh (a int PRIMARY KEY) USING mot;
INSERT INTO am_fresh VALUES (1);
TRUNCATE am_fresh;
INSERT INTO am_fresh VALUES (1), (2);
SAVEPOINT s;
TRUNCATE am_fresh;
INSERT INTO am_fresh VALUES (3);
ROLLBACK TO s;
SELECT * FROM am_fresh ORDER BY a;
COMMIT;
SELECT * FROM am_fresh ORDER BY a;
INSERT INTO am_fresh VALUES (2);
-- One row, changed more often than there are ordinals, in one transaction and in many.
CREATE TABLE am_hot (id int PRIMARY KEY, n int) USING mot;
INSERT INTO am_hot VALUES (1, 0);
DO $$ BEGIN FOR i IN 1..20000 LOOP UPDATE am_hot SET n = n + 1 WHERE id = 1; END LOOP; END $$;
SELECT n FROM am_hot;
DO $$ BEGIN FOR i IN 1..20000 LOOP UPDATE am_hot SET n = n + 1 WHERE id = 1; COMMIT; END LOOP; END $$;
SELECT n FROM am_hot;
-- The views know them by their oids.
SELECT relname, rows, rows_inserted > 0 AS counts FROM mot.stat_tables WHERE relname = 'am_scroll';
SELECT relname, indexrelname, is_unique, entries FROM mot.stat_indexes WHERE relname = 'am_scroll';
SELECT mot.table_size('am_scroll') > 0 AS has_size, mot.index_size('am_scroll_pkey') > 0 AS index_has_size;
SELECT rows, versions FROM mot.check('am_row');
SELECT rows FROM mot.check('am_fresh');
SELECT rows FROM mot.check('am_hot');
DROP TABLE am_row, am_scroll, am_fresh, am_hot;
DROP FUNCTION am_note, am_sums;
-- NOT NULL that goes leaves no NULL without an entry.
CREATE TABLE am_nullable (a int NOT NULL, b int NOT NULL, UNIQUE NULLS NOT DISTINCT (b)) USING mot;
CREATE INDEX ON am_nullable (a);
ALTER TABLE am_nullable ALTER a DROP NOT NULL, ALTER b DROP NOT NULL;
INSERT INTO am_nullable VALUES (NULL, NULL), (1, 1);
INSERT INTO am_nullable VALUES (2, NULL);
SET enable_seqscan = off;
SELECT count(*) FROM am_nullable WHERE a IS NULL;
SELECT a FROM am_nullable ORDER BY a;
RESET enable_seqscan;
SELECT rows, entries FROM mot.check('am_nullable');
DROP TABLE am_nullable;
-- An index without an order, and one that is asked for no column.
CREATE TABLE am_collated (id int PRIMARY KEY, c text COLLATE "und-x-icu") USING mot;
CREATE INDEX ON am_collated (c);
INSERT INTO am_collated SELECT g, 'x' || g FROM generate_series(1, 300) g;
ANALYZE am_collated;
SET enable_seqscan = off;
SELECT id FROM am_collated WHERE c = 'x5';
SELECT count(*) FROM am_collated;
RESET enable_seqscan;
DROP TABLE am_collated;
-- System columns say who has replaced, deleted or locked a version, in every place where a row can be asked.
CREATE TABLE am_system (id int PRIMARY KEY, v int) USING mot;
CREATE TABLE am_system_heap (id int PRIMARY KEY, v int) USING heap;
CREATE FUNCTION am_whose(x xid) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN x = '0' THEN 'nobody' WHEN x = pg_current_xact_id_if_assigned()::xid THEN 'own' ELSE 'other' END $$;
CREATE FUNCTION am_system() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    RAISE NOTICE '% % % %: xmin %, xmax %', TG_RELNAME, TG_WHEN, TG_OP, OLD, am_whose(OLD.xmin), am_whose(OLD.xmax);
  END IF;
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  IF TG_WHEN = 'AFTER' THEN
    RAISE NOTICE '% % % %: xmin %, xmax %', TG_RELNAME, TG_WHEN, TG_OP, NEW, am_whose(NEW.xmin), am_whose(NEW.xmax);
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION am_both(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE replace(statement, 'TABLE', 'am_system_heap');
  RETURN QUERY EXECUTE replace(statement, 'TABLE', 'am_system');
END $$;
INSERT INTO am_system SELECT g, g FROM generate_series(1, 6) g;
INSERT INTO am_system_heap SELECT g, g FROM generate_series(1, 6) g;
SELECT am_both($$SELECT DISTINCT concat_ws(' ', tableoid::regclass, am_whose(xmax), cmin, cmax) FROM TABLE$$);
BEGIN;
SELECT am_both($$INSERT INTO TABLE VALUES (7, 7) RETURNING concat_ws(' ', tableoid::regclass, am_whose(xmin), am_whose(xmax))$$);
SELECT am_both($$UPDATE TABLE SET v = 0 WHERE id = 1 RETURNING concat_ws(' ', tableoid::regclass, am_whose(xmin), am_whose(xmax))$$);
SELECT am_both($$DELETE FROM TABLE WHERE id = 2 RETURNING concat_ws(' ', tableoid::regclass, am_whose(xmin), am_whose(xmax), cmin = cmax)$$);
SELECT am_both($$DELETE FROM TABLE WHERE id = 7 RETURNING concat_ws(' ', tableoid::regclass, am_whose(xmin), am_whose(xmax))$$);
SELECT am_both($$SELECT id::text FROM TABLE WHERE id = 3 FOR UPDATE$$);
SELECT am_both($$SELECT concat_ws(' ', tableoid::regclass, id, am_whose(xmin), am_whose(xmax)) FROM TABLE ORDER BY id$$);
SELECT am_both($$UPDATE TABLE SET v = 0 WHERE id = 3 RETURNING concat_ws(' ', tableoid::regclass, am_whose(xmax))$$);
-- A cursor goes on seeing what was replaced.
DECLARE am_cursor CURSOR FOR SELECT am_whose(xmin) AS xmin, am_whose(xmax) AS xmax, id FROM am_system WHERE id > 3;
FETCH am_cursor;
UPDATE am_system SET v = 1 WHERE id = 5;
DELETE FROM am_system WHERE id = 6;
FETCH ALL FROM am_cursor;
SAVEPOINT s;
UPDATE am_system SET v = 2 WHERE id = 4;
ROLLBACK TO s;
SELECT am_whose(xmax), v FROM am_system WHERE id = 4;
ROLLBACK;
SELECT DISTINCT am_whose(xmax) FROM am_system;
-- Triggers. A new version of a locked row tells the lock to RETURNING alone.
CREATE TRIGGER am_before BEFORE INSERT OR UPDATE OR DELETE ON am_system FOR EACH ROW EXECUTE FUNCTION am_system();
CREATE TRIGGER am_after AFTER INSERT OR UPDATE OR DELETE ON am_system FOR EACH ROW EXECUTE FUNCTION am_system();
CREATE TRIGGER am_before BEFORE INSERT OR UPDATE OR DELETE ON am_system_heap FOR EACH ROW EXECUTE FUNCTION am_system();
CREATE TRIGGER am_after AFTER INSERT OR UPDATE OR DELETE ON am_system_heap FOR EACH ROW EXECUTE FUNCTION am_system();
SELECT am_both($$INSERT INTO TABLE VALUES (7, 7) RETURNING concat_ws(' ', am_whose(xmin), am_whose(xmax))$$);
SELECT am_both($$UPDATE TABLE SET v = 2 WHERE id = 1 RETURNING concat_ws(' ', am_whose(xmin), am_whose(xmax))$$);
SELECT am_both($$DELETE FROM TABLE WHERE id = 1 RETURNING concat_ws(' ', am_whose(xmin), am_whose(xmax))$$);
DROP TABLE am_system, am_system_heap;
DROP FUNCTION am_system, am_both, am_whose;
-- Samples: as coarse as heap's, the same set again for a seed, and the share that is asked for.
CREATE TABLE am_sample (id int, t text) USING mot WITH (fillfactor = 10);
CREATE TABLE am_sample_heap (id int, t text) USING heap WITH (fillfactor = 10);
INSERT INTO am_sample SELECT g, repeat('x', 200) FROM generate_series(1, 30) g;
INSERT INTO am_sample_heap SELECT * FROM am_sample;
SELECT array_agg(id) = (SELECT array_agg(id) FROM am_sample_heap TABLESAMPLE SYSTEM (40) REPEATABLE (1)) FROM am_sample TABLESAMPLE SYSTEM (40) REPEATABLE (1);
SELECT array_agg(id) = (SELECT array_agg(id) FROM am_sample_heap TABLESAMPLE BERNOULLI (40) REPEATABLE (1)) FROM am_sample TABLESAMPLE BERNOULLI (40) REPEATABLE (1);
CREATE TABLE am_sample_wide (id int, t text) USING mot;
INSERT INTO am_sample_wide SELECT g, repeat('x', 3000) FROM generate_series(1, 1000) g;
SELECT count(*) BETWEEN 50 AND 150 FROM am_sample_wide TABLESAMPLE SYSTEM (10) REPEATABLE (2);
SELECT count(*) FROM am_sample_wide TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM am_sample_wide TABLESAMPLE SYSTEM (0);
DROP TABLE am_sample, am_sample_heap, am_sample_wide;
-- A table's own rows are known to the planner in the transaction that fills it.
CREATE FUNCTION am_estimated(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::bigint;
END $$;
BEGIN;
CREATE TABLE am_filled (id int PRIMARY KEY, v int) USING mot;
INSERT INTO am_filled SELECT g, g % 10 FROM generate_series(1, 10000) g;
SELECT am_estimated('SELECT * FROM am_filled');
DELETE FROM am_filled WHERE id > 5000;
SELECT am_estimated('SELECT * FROM am_filled');
ANALYZE am_filled;
SELECT am_estimated('SELECT * FROM am_filled'), am_estimated('SELECT * FROM am_filled WHERE v = 1'), reltuples FROM pg_class WHERE relname = 'am_filled';
TRUNCATE am_filled;
INSERT INTO am_filled SELECT g, g % 10 FROM generate_series(1, 100) g;
SELECT am_estimated('SELECT * FROM am_filled');
COMMIT;
SELECT am_estimated('SELECT * FROM am_filled');
DROP TABLE am_filled;
DROP FUNCTION am_estimated;
