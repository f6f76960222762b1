-- This file belongs to mot_engine/src/reclaim/given_up.rs and mot_engine/src/transaction/prepare.rs: tables and indexes that a prepared
-- transaction creates, drops, empties, alters and rewrites. Restarts, standbys and promotions with such ones are in ha/t/050_prepared_definitions.pl.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA am_prepared;
SET search_path = am_prepared, pg_catalog;
SET default_table_access_method = mot;
-- What one session does to tables of this schema another one ends.
CREATE FUNCTION reset() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS t, made, was_heap, was_mot;
  CREATE TABLE t (id int PRIMARY KEY, k int, v text);
  CREATE INDEX t_k ON t (k);
  INSERT INTO t SELECT i, i * 10, 'old' FROM generate_series(1, 5) i;
  CREATE TABLE was_heap (id int PRIMARY KEY, v text) USING heap;
  INSERT INTO was_heap SELECT i, 'heap' FROM generate_series(1, 3) i;
  CREATE TABLE was_mot (id int PRIMARY KEY, v text);
  INSERT INTO was_mot SELECT i, 'mot' FROM generate_series(1, 3) i;
END $$;
-- Every table with its rows by a scan and by each index, checked if it is a memory-optimized one.
CREATE FUNCTION show() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record; x record; rows_by text; found text;
BEGIN
  FOR r IN SELECT c.oid, relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam
    WHERE relnamespace = 'am_prepared'::regnamespace AND relkind = 'r' ORDER BY relname COLLATE "C" LOOP
    EXECUTE format('SELECT string_agg(x::text, '' '' ORDER BY id) FROM am_prepared.%I x', r.relname) INTO found;
    RETURN NEXT format('%s %s: %s', r.relname, r.amname, found);
    IF r.amname = 'mot' THEN
      PERFORM mot.check(r.oid::regclass);
    END IF;
    SET LOCAL enable_seqscan = off;
    FOR x IN SELECT i.indexrelid::regclass::text AS name, attname FROM pg_index i JOIN pg_attribute a ON attrelid = i.indexrelid AND attnum = 1
      WHERE indrelid = r.oid ORDER BY 1 LOOP
      EXECUTE format('SELECT string_agg(x::text, '' '' ORDER BY id) FROM am_prepared.%I x WHERE %I >= %s', r.relname, x.attname, '''0''') INTO rows_by;
      RETURN NEXT format('  by %s%s', x.name, CASE WHEN rows_by IS DISTINCT FROM found THEN ': ' || rows_by END);
    END LOOP;
    SET LOCAL enable_seqscan = on;
  END LOOP;
END $$;
-- Waits until what was dropped or rolled back is unlinked: the storages that the engine has are those of the catalog.
CREATE PROCEDURE wait_for_reclaimer() LANGUAGE plpgsql AS $$
DECLARE of_engine bigint[]; of_catalog bigint[];
BEGIN
  FOR i IN 1 .. 500 LOOP
    SELECT ARRAY[(SELECT count(*) FROM mot.table_usage()), (SELECT count(*) FROM mot.index_usage())] INTO of_engine;
    SELECT ARRAY[(SELECT count(*) FROM pg_class JOIN pg_am a ON a.oid = relam WHERE amname = 'mot' AND relkind IN ('r', 'm')),
      (SELECT count(*) FROM pg_class JOIN pg_am a ON a.oid = relam WHERE amname = 'mot_index' AND relkind = 'i')] INTO of_catalog;
    IF of_engine = of_catalog THEN RETURN; END IF;
    COMMIT;
    PERFORM pg_sleep(0.02);
  END LOOP;
  RAISE 'the engine has % and the catalog %', of_engine, of_catalog;
END $$;

-- Made: with rows, indexes, and a foreign key.
SELECT reset();
BEGIN;
CREATE TABLE made (id int PRIMARY KEY, k int REFERENCES t, v text UNIQUE);
INSERT INTO made SELECT i, i, 'made ' || i FROM generate_series(1, 3) i;
CREATE INDEX made_k ON made (k DESC);
SAVEPOINT s;
CREATE TABLE never (id int);
ROLLBACK TO s;
PREPARE TRANSACTION 'made';
-- The session goes on, and knows nothing of it.
SELECT * FROM made;
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
SELECT to_regclass('made');
COMMIT PREPARED 'made';
SELECT * FROM show();
INSERT INTO made VALUES (4, 9, 'no such parent');
INSERT INTO made VALUES (4, 1, 'made 1');
INSERT INTO made VALUES (4, 1, 'made 4');
DELETE FROM t WHERE id = 1;
SELECT * FROM show();
BEGIN;
CREATE TABLE made2 (id int PRIMARY KEY) USING mot;
INSERT INTO made2 SELECT generate_series(1, 1000);
PREPARE TRANSACTION 'made';
ROLLBACK PREPARED 'made';
SELECT to_regclass('made2');
CALL wait_for_reclaimer();

-- Dropped.
BEGIN;
INSERT INTO t VALUES (77, 77, 'and then dropped');
DROP TABLE t, made;
PREPARE TRANSACTION 'dropped';
SET lock_timeout = '50ms';
SELECT * FROM t;
RESET lock_timeout;
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
ROLLBACK PREPARED 'dropped';
SELECT * FROM show();
INSERT INTO t VALUES (78, 78, 'it is there');
BEGIN;
DROP TABLE t, made;
PREPARE TRANSACTION 'dropped';
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
COMMIT PREPARED 'dropped';
SELECT * FROM show();
CALL wait_for_reclaimer();

-- Emptied, and filled again; the drop that was rolled back is another session's next.
SET default_table_access_method = mot;
SELECT reset();
BEGIN;
UPDATE t SET v = 'first';
TRUNCATE t;
INSERT INTO t VALUES (1, 1, 'fresh'), (9, 9, 'fresh');
PREPARE TRANSACTION 'emptied';
ROLLBACK PREPARED 'emptied';
SELECT * FROM show();
BEGIN;
TRUNCATE t;
INSERT INTO t VALUES (1, 1, 'fresh'), (9, 9, 'fresh');
PREPARE TRANSACTION 'emptied';
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
COMMIT PREPARED 'emptied';
INSERT INTO t VALUES (1, 1, 'a key that is there');
INSERT INTO t VALUES (2, 2, 'a key that was there');
SELECT * FROM show();
CALL wait_for_reclaimer();

-- Altered and rewritten, to and from heap, indexes come and go. Every one of these is done twice: rolled back, and committed.
SET default_table_access_method = mot;
CREATE PROCEDURE alter_all() LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'ALTER TABLE t ALTER k TYPE bigint USING -k, ADD d text DEFAULT ''d'' || random()::int - random()::int';
  EXECUTE 'DROP INDEX t_k';
  EXECUTE 'CREATE UNIQUE INDEX t_d ON t (k, d)';
  EXECUTE 'REINDEX TABLE t';
  EXECUTE 'CLUSTER t USING t_d';
  EXECUTE 'ALTER TABLE was_heap SET ACCESS METHOD mot';
  EXECUTE 'ALTER TABLE was_mot SET ACCESS METHOD heap';
  EXECUTE 'UPDATE was_heap SET v = v || '' no more''';
  EXECUTE 'UPDATE was_mot SET v = v || '' no more''';
END $$;
SELECT reset();
ALTER TABLE t ADD n int DEFAULT 3;
BEGIN;
CALL alter_all();
PREPARE TRANSACTION 'altered';
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
ROLLBACK PREPARED 'altered';
SELECT * FROM show();
BEGIN;
CALL alter_all();
PREPARE TRANSACTION 'altered';
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
COMMIT PREPARED 'altered';
SELECT regexp_replace(show, 'd[-0-9.]+', 'd', 'g') FROM show();
UPDATE t SET v = 'and on' WHERE id = 2;
SELECT v FROM t WHERE k = -20;
CALL wait_for_reclaimer();

-- Several at a time, ended in another order, one behind the other's drop.
SET default_table_access_method = mot;
SELECT reset();
BEGIN; CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1); PREPARE TRANSACTION 'a';
BEGIN; TRUNCATE t; INSERT INTO t VALUES (3); PREPARE TRANSACTION 'b';
BEGIN; DROP TABLE was_mot; CREATE TABLE was_mot (id int PRIMARY KEY); INSERT INTO was_mot VALUES (8); PREPARE TRANSACTION 'c';
COMMIT PREPARED 'c';
ROLLBACK PREPARED 'b';
BEGIN; DROP TABLE t; PREPARE TRANSACTION 'd';
\c
SET client_min_messages = warning;
SET search_path = am_prepared, pg_catalog;
COMMIT PREPARED 'a';
COMMIT PREPARED 'd';
SELECT * FROM show();
CALL wait_for_reclaimer();

-- Made and dropped by one transaction; and a name that is taken, behind what we have logged.
SET default_table_access_method = mot;
BEGIN; CREATE TABLE short (id int); INSERT INTO short VALUES (1); DROP TABLE short; TRUNCATE a; PREPARE TRANSACTION 'short';
BEGIN; CREATE TABLE late (id int); PREPARE TRANSACTION 'short';
SELECT to_regclass('late');
COMMIT PREPARED 'short';
SELECT * FROM show();
CALL wait_for_reclaimer();

-- An index on a table that is read meanwhile, and a database that is in use.
SELECT reset();
BEGIN; CREATE INDEX t_v ON t (v); PREPARE TRANSACTION 'index';
SELECT count(*) FROM t WHERE v = 'old';
SET lock_timeout = '50ms';
INSERT INTO t VALUES (6, 6, 'new');
RESET lock_timeout;
COMMIT PREPARED 'index';
INSERT INTO t VALUES (6, 6, 'new');
SELECT * FROM show();
DROP SCHEMA am_prepared CASCADE;
