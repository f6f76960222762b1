-- Event triggers that use a table at the end of the statement that makes it: what they put there stays.
CREATE FUNCTION et_use() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE FOREIGN TABLE' LOOP
    EXECUTE format(current_setting('et.command'), r.objid::regclass);
  END LOOP;
END $$;
CREATE EVENT TRIGGER et ON ddl_command_end WHEN TAG IN ('CREATE FOREIGN TABLE') EXECUTE FUNCTION et_use();
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
SELECT count(*) FROM mot.storages() s LEFT JOIN pg_class c ON c.oid = s.relation WHERE c.oid IS NULL;
DROP FOREIGN TABLE et_indexed, et_filled, et_null, et_altered, et_keyed, et_nullable;
