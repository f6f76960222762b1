-- What is not supported says so: 0A000 and a hint. The rest works; each command is taken back.
\set VERBOSITY verbose
CREATE FUNCTION pg_temp.refused(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; hint text;
BEGIN
  EXECUTE command;
  RAISE SQLSTATE 'ZZ000';
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
  RETURN 'works';
WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
  -- From 17 on an index is made under a search path of the catalogs alone.
  RETURN format('%s: %s%s', state, replace(message, 'public.', ''), CASE WHEN hint <> '' THEN E'\n    hint: ' || hint END);
END $$;
CREATE FOREIGN TABLE un (a int PRIMARY KEY, b text, c point, d int4range, e int[], f json) SERVER mot;
CREATE FOREIGN TABLE un_plain (a int PRIMARY KEY, b text) SERVER mot;
CREATE TABLE un_heap (a int PRIMARY KEY, b text);
CREATE TABLE un_parent (a int, b text, c point, d int4range, e int[], f json);
ALTER TABLE un INHERIT un_parent;
CREATE FUNCTION un_function() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
SET client_min_messages = error;
CREATE TABLE un_parted (a int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE un_part PARTITION OF un_parted DEFAULT SERVER mot;
CREATE TYPE un_pair AS (a int, b int);
CREATE COLLATION un_insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT command || E'\n  ' || pg_temp.refused(command) AS "command and answer" FROM unnest(ARRAY[
  'CREATE FOREIGN TABLE un2 (a int REFERENCES un_heap) SERVER mot',
  'CREATE FOREIGN TABLE un2 (a int, FOREIGN KEY (a) REFERENCES un_heap) SERVER mot',
  'CREATE TABLE un2 (a int REFERENCES un)',
  'CREATE TABLE un2 (a int, FOREIGN KEY (a) REFERENCES un (a))',
  'ALTER TABLE un_heap ADD FOREIGN KEY (a) REFERENCES un',
  'ALTER TABLE un_heap ADD COLUMN x int REFERENCES un',
  'ALTER TABLE un ADD FOREIGN KEY (a) REFERENCES un_heap',
  'ALTER TABLE un ADD COLUMN x int REFERENCES un_heap',
  'CREATE FOREIGN TABLE un2 (a int, EXCLUDE USING gist (a WITH =)) SERVER mot',
  'ALTER TABLE un ADD EXCLUDE USING gist (d WITH &&)',
  'CREATE FOREIGN TABLE un2 (LIKE un_heap) SERVER mot',
  'CREATE INDEX ON un (lower(b))',
  'CREATE INDEX ON un (a) WHERE a > 0',
  'CREATE INDEX ON un USING hash (a)',
  'CREATE INDEX ON un USING gin (e)',
  'CREATE INDEX ON un USING nonsense (a)',
  'CREATE INDEX ON un (c)',
  'CREATE INDEX ON un (f)',
  'CREATE INDEX ON un (ctid)',
  'CREATE INDEX ON un (nope)',
  'CREATE INDEX ON un (a COLLATE "C")',
  'CREATE INDEX ON un (b COLLATE un_insensitive)',
  'CREATE INDEX ON un (b text_pattern_ops)',
  'CREATE FOREIGN TABLE un2 (a un_pair PRIMARY KEY) SERVER mot',
  'CREATE INDEX ON un_heap USING mot_index (a)',
  'ALTER TABLE un_plain ALTER a TYPE bigint',
  'ALTER TABLE un_plain ALTER b TYPE int USING b::int',
  'ALTER TABLE un ENABLE ROW LEVEL SECURITY',
  'CREATE POLICY p ON un',
  'ALTER TABLE un REPLICA IDENTITY FULL',
  'ALTER TABLE un CLUSTER ON un_pkey',
  'ALTER TABLE un SET UNLOGGED',
  'ALTER TABLE un SET ACCESS METHOD heap',
  'ALTER INDEX un_pkey SET (fillfactor = 50)',
  'ALTER INDEX un_pkey SET TABLESPACE pg_default',
  'CLUSTER un USING un_pkey',
  'CREATE RULE r AS ON INSERT TO un DO ALSO INSERT INTO un_heap VALUES (NEW.a)',
  'CREATE RULE r AS ON UPDATE TO un DO INSTEAD NOTHING',
  'CREATE CONSTRAINT TRIGGER t AFTER INSERT ON un DEFERRABLE FOR EACH ROW EXECUTE FUNCTION un_function()',
  'CREATE CONSTRAINT TRIGGER t AFTER INSERT ON un_parted FOR EACH ROW EXECUTE FUNCTION un_function()',
  'CREATE TRIGGER t AFTER INSERT ON un_plain REFERENCING NEW TABLE AS n EXECUTE FUNCTION un_function()',
  'CREATE TRIGGER t AFTER UPDATE ON un_plain REFERENCING OLD TABLE AS o FOR EACH ROW EXECUTE FUNCTION un_function()',
  'SELECT * FROM un TABLESAMPLE system (10)',
  'SELECT * FROM un_parent TABLESAMPLE system (0)',
  'SELECT * FROM un_parted TABLESAMPLE bernoulli (0)',
  'MERGE INTO un_plain un USING un_heap h ON un.a = h.a WHEN MATCHED THEN DELETE',
  'MERGE INTO un_parted p USING un_heap h ON p.a = h.a WHEN MATCHED THEN DELETE',
  'INSERT INTO un_parted VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2'
]) WITH ORDINALITY AS c(command, n) ORDER BY n;
\set VERBOSITY default
CREATE ACCESS METHOD un_method TYPE TABLE HANDLER mot.table_handler;
CREATE ACCESS METHOD un_method TYPE INDEX HANDLER mot.table_index_handler;
CREATE ACCESS METHOD un_method TYPE TABLE HANDLER heap_tableam_handler;
DROP ACCESS METHOD un_method;
SELECT rows FROM mot.check('un');
DROP FOREIGN TABLE un, un_plain;
DROP TABLE un_heap, un_parted, un_parent;
DROP FUNCTION un_function;
DROP TYPE un_pair;
DROP COLLATION un_insensitive;
RESET client_min_messages;
