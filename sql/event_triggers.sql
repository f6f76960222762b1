-- Event triggers that use a table at the end of the statement that makes it: what they put there stays.
CREATE FUNCTION et_use() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE TABLE' LOOP
    EXECUTE format(current_setting('et.command'), r.objid::regclass);
  END LOOP;
END $$;
CREATE EVENT TRIGGER et ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION et_use();
SET et.command = 'CREATE INDEX et_indexed_a ON %s (a)';
CREATE FOREIGN TABLE et_indexed (a int, b int PRIMARY KEY) SERVER mot;
INSERT INTO et_indexed SELECT n, -n FROM generate_series(1, 100) n;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM et_indexed WHERE a = 7;
SELECT * FROM et_indexed WHERE a = 7;
SELECT * FROM et_indexed WHERE b = -7;
RESET enable_seqscan;
SELECT rows, entries FROM mot.check('et_indexed');
SET et.command = 'INSERT INTO %s VALUES (1, 1), (2, 2)';
CREATE FOREIGN TABLE et_filled (a int, b int PRIMARY KEY) SERVER mot;
SELECT * FROM et_filled ORDER BY a;
SELECT * FROM et_filled WHERE b = 2;
INSERT INTO et_filled VALUES (3, 2);
SELECT rows, entries FROM mot.check('et_filled');
SET et.command = 'INSERT INTO %s VALUES (1, 1), (2, 1)';
CREATE FOREIGN TABLE et_twice (a int, b int PRIMARY KEY) SERVER mot;
SET et.command = 'INSERT INTO %s (a) VALUES (1)';
CREATE FOREIGN TABLE et_null (a int, b int) SERVER mot;
SELECT * FROM et_null;
SET et.command = 'ALTER TABLE %s ADD COLUMN c int DEFAULT 5';
CREATE FOREIGN TABLE et_altered (a int UNIQUE) SERVER mot;
INSERT INTO et_altered VALUES (1);
SELECT * FROM et_altered;
SET et.command = 'ALTER TABLE %s ADD PRIMARY KEY (a)';
CREATE FOREIGN TABLE et_keyed (a int) SERVER mot;
SET et.command = 'SELECT 1';
CREATE FOREIGN TABLE et_nullable (a int, b int) SERVER mot;
CREATE UNIQUE INDEX et_nullable_b ON et_nullable (b);
CREATE FUNCTION et_key() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  ALTER TABLE et_nullable ADD PRIMARY KEY USING INDEX et_nullable_b; RETURN 1; END $$;
CREATE TABLE et_made AS SELECT et_key() AS a;
SELECT attrelid::regclass, attname FROM pg_attribute WHERE attrelid::regclass::text LIKE 'et\_%' AND attnotnull AND attnum > 0 ORDER BY 1, 2;
DROP TABLE et_made;
DROP FUNCTION et_key;
SET et.command = 'ALTER TABLE %s RENAME TO et_renamed';
CREATE FOREIGN TABLE et_named (a int UNIQUE) SERVER mot;
SET et.command = 'DROP FOREIGN TABLE %s';
CREATE FOREIGN TABLE et_dropped (a int) SERVER mot;
DROP EVENT TRIGGER et;
DROP FUNCTION et_use;
SELECT count(*) FROM mot.storages() s JOIN pg_database d ON d.oid = s.database AND datname = current_database() LEFT JOIN pg_class c ON c.relfilenode = s.relation WHERE c.oid IS NULL;
DROP FOREIGN TABLE et_indexed, et_filled, et_null, et_altered, et_keyed, et_nullable;

-- Statements of which core gets nothing to run fire them all the same, as on a heap table.
CREATE FUNCTION et_start() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% begins', tg_tag;
  IF current_setting('et.refuses', true) = 'on' THEN RAISE 'no definitions today'; END IF;
END $$;
CREATE FUNCTION et_end() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() LOOP
    RAISE NOTICE '% ends: % of % %', tg_tag, r.command_tag, r.object_type, r.object_identity;
  END LOOP;
END $$;
CREATE TABLE et_heap (a int, b int NOT NULL, c int NOT NULL);
CREATE FOREIGN TABLE et_mot (a int, b int NOT NULL, c int NOT NULL) SERVER mot;
CREATE EVENT TRIGGER et_start ON ddl_command_start EXECUTE FUNCTION et_start();
CREATE EVENT TRIGGER et_end ON ddl_command_end EXECUTE FUNCTION et_end();
CREATE INDEX et_heap_a ON et_heap (a);
CREATE INDEX et_mot_a ON et_mot (a);
CREATE INDEX IF NOT EXISTS et_heap_a ON et_heap (a);
CREATE INDEX IF NOT EXISTS et_mot_a ON et_mot (a);
CREATE INDEX CONCURRENTLY et_heap_ab ON et_heap (a, b);
CREATE INDEX CONCURRENTLY et_mot_ab ON et_mot (a, b);
ALTER TABLE et_heap ADD PRIMARY KEY (b);
ALTER TABLE et_mot ADD PRIMARY KEY (b);
ALTER TABLE et_heap ADD UNIQUE (a), ADD CONSTRAINT et_heap_two UNIQUE (a, c);
ALTER TABLE et_mot ADD UNIQUE (a), ADD CONSTRAINT et_mot_two UNIQUE (a, c);
CREATE UNIQUE INDEX et_heap_c ON et_heap (c);
CREATE UNIQUE INDEX et_mot_c ON et_mot (c);
ALTER TABLE et_heap ADD UNIQUE USING INDEX et_heap_c;
ALTER TABLE et_mot ADD UNIQUE USING INDEX et_mot_c;
CREATE FOREIGN TABLE et_null (a int) SERVER mot;
ALTER TABLE et_null ADD PRIMARY KEY (a);
DROP FOREIGN TABLE et_null;
ALTER TABLE et_heap SET (fillfactor = 50);
ALTER TABLE et_mot SET (fillfactor = 50);
-- Inside another statement.
SET default_table_access_method = mot;
CREATE SCHEMA et_schema CREATE TABLE inside (a int) CREATE INDEX inside_a ON inside (a);
RESET default_table_access_method;
-- What they refuse is not done.
SET et.refuses = on;
CREATE INDEX et_mot_refused ON et_mot (b);
ALTER TABLE et_mot ADD CONSTRAINT et_mot_refused UNIQUE (b);
SET et.refuses = off;
-- After an error, also inside a statement that goes on, the next one is told of its own alone.
INSERT INTO et_mot VALUES (1, 1, 1), (2, 2, 2);
CREATE UNIQUE INDEX et_mot_failed ON et_mot ((1));
CREATE FUNCTION et_fail() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    ALTER TABLE et_mot ADD CONSTRAINT et_mot_a UNIQUE (c, b);
  EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM;
  END;
  CREATE INDEX et_mot_last ON et_mot (c, a);
  RETURN 1;
END $$;
CREATE TABLE et_result AS SELECT et_fail();
SELECT relname FROM pg_class WHERE relname LIKE 'et\_mot%' ORDER BY 1;
DROP EVENT TRIGGER et_start;
DROP EVENT TRIGGER et_end;
-- One that makes the very table at the beginning: IF NOT EXISTS passes it by as it is.
CREATE FUNCTION et_first() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('et.kind', true) <> '' AND to_regclass('et_raced') IS NULL AND current_setting('et.inside', true) IS DISTINCT FROM 'on' THEN
    PERFORM set_config('et.inside', 'on', true);
    EXECUTE format(current_setting('et.kind'), 'et_raced');
    PERFORM set_config('et.inside', 'off', true);
  END IF;
END $$;
CREATE EVENT TRIGGER et_first ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION et_first();
SET et.kind = 'CREATE FOREIGN TABLE %s (a int, b int) SERVER mot';
CREATE FOREIGN TABLE IF NOT EXISTS et_raced (a int PRIMARY KEY, b int UNIQUE) SERVER mot;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'et_raced'::regclass;
DROP FOREIGN TABLE et_raced;
SET et.kind = 'CREATE TABLE %s (a int, b int)';
CREATE FOREIGN TABLE IF NOT EXISTS et_raced (a int PRIMARY KEY, b int UNIQUE) SERVER mot;
SELECT relkind FROM pg_class WHERE relname = 'et_raced';
DROP TABLE et_raced;
-- And one that makes others is none of its business.
CREATE FOREIGN TABLE IF NOT EXISTS et_other (a int PRIMARY KEY, b int UNIQUE) SERVER mot;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'et_other'::regclass ORDER BY 1;
DROP EVENT TRIGGER et_first;
SET client_min_messages = warning;
DROP SCHEMA et_schema CASCADE;
DROP FOREIGN TABLE et_mot, et_other;
DROP TABLE et_heap, et_result, et_raced;
DROP FUNCTION et_start, et_end, et_fail, et_first;
