-- What ALTER TABLE does of its subcommands before and after it computes what old rows get: each statement is run on heap tables and on memory-optimized
-- ones that are made by the same text, a row is added, and what there is then, or the error, is compared.
SET client_min_messages = error;
CREATE FUNCTION ao_try(kind text, makes text, command text, adds text, look text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
  IF kind = 'heap' THEN
    makes := replace(replace(makes, 'FOREIGN TABLE', 'TABLE'), 'SERVER mot', '');
  END IF;
  EXECUTE makes;
  EXECUTE command;
  IF adds <> '' THEN
    EXECUTE adds;
  END IF;
  EXECUTE look INTO found;
  RAISE EXCEPTION USING ERRCODE = 'AO000', MESSAGE = found;
EXCEPTION
  WHEN SQLSTATE 'AO000' THEN RETURN SQLERRM;
  -- Which of several tables is looked at first is not compared.
  WHEN OTHERS THEN RETURN SQLSTATE || ' ' || regexp_replace(SQLERRM, 'relation "ao(_\d)?"', 'relation', 'g');
END $$;
CREATE FUNCTION ao_compare(makes text, commands text[], adds text, look text)
RETURNS TABLE (command text, heap text, mot text) LANGUAGE plpgsql AS $$
BEGIN
  FOREACH command IN ARRAY commands LOOP
    heap := ao_try('heap', makes, command, adds, look);
    mot := ao_try('mot', makes, command, adds, look);
    IF mot = heap THEN
      mot := 'the same';
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;
CREATE ROLE ao_other;
CREATE DOMAIN ao_given AS int DEFAULT 7;
CREATE DOMAIN ao_strict AS int NOT NULL;
CREATE DOMAIN ao_plain AS int;
-- A type that is no domain and has a default.
CREATE TYPE ao_text;
CREATE FUNCTION ao_text_in(cstring) RETURNS ao_text LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION ao_text_out(ao_text) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE ao_text (INPUT = ao_text_in, OUTPUT = ao_text_out, LIKE = text, DEFAULT = 'zippo');
CREATE DOMAIN ao_over AS ao_text;
\pset format unaligned
\pset fieldsep '\n    '
\pset tuples_only on
-- One table.
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao (a int, b varchar(10)) SERVER mot; INSERT INTO ao VALUES (1, ''one''), (2, NULL)',
  ARRAY[
    -- the default of old rows, and that of rows to come
    'ALTER TABLE ao ADD COLUMN status varchar(30) DEFAULT ''old'', ALTER COLUMN status SET DEFAULT ''current''',
    'ALTER TABLE ao ADD COLUMN n int, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ALTER n SET DEFAULT 5, ADD COLUMN n int DEFAULT 4',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n SET DEFAULT 5, ALTER n SET DEFAULT 6',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n SET DEFAULT NULL',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n DROP DEFAULT',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ADD COLUMN m int DEFAULT 5, ALTER n SET DEFAULT 6, ALTER a SET DEFAULT 7',
    'ALTER TABLE ao ADD COLUMN n serial, ALTER n SET DEFAULT 100',
    'ALTER TABLE ao ADD COLUMN n ao_given, ALTER n SET DEFAULT 8',
    'ALTER TABLE ao ADD COLUMN n ao_strict, ALTER n SET DEFAULT 8',
    'ALTER TABLE ao ADD COLUMN n ao_strict DEFAULT 7, ALTER n SET DEFAULT 8',
    'ALTER TABLE ao ADD COLUMN IF NOT EXISTS b text DEFAULT ''x'', ALTER b SET DEFAULT ''y''',
    'ALTER TABLE ao DROP COLUMN b, ADD COLUMN b text DEFAULT ''old'', ALTER b SET DEFAULT ''new''',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n SET DEFAULT ''five''',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n SET DEFAULT 5, OWNER TO ao_other',
    -- with what is said of the rows
    'ALTER TABLE ao ADD COLUMN n int NOT NULL, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int, ALTER n SET NOT NULL, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n SET NOT NULL, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int NOT NULL DEFAULT 4, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int NOT NULL DEFAULT 4, ALTER n DROP NOT NULL, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 6 CHECK (n < 6), ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4 CHECK (n < 6), ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int, ADD CONSTRAINT few CHECK (n > 4), ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ADD CONSTRAINT few CHECK (n > 4), ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ADD CONSTRAINT few CHECK (n > 4) NOT VALID, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int UNIQUE, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4 UNIQUE, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ADD PRIMARY KEY (a), ALTER n SET DEFAULT 5',
    -- identity
    'ALTER TABLE ao ADD COLUMN n int NOT NULL, ALTER n ADD GENERATED ALWAYS AS IDENTITY',
    'ALTER TABLE ao ADD COLUMN n int, ALTER n ADD GENERATED ALWAYS AS IDENTITY',
    'ALTER TABLE ao ADD COLUMN n int NOT NULL DEFAULT 4, ALTER n ADD GENERATED ALWAYS AS IDENTITY',
    'ALTER TABLE ao ADD COLUMN n int GENERATED ALWAYS AS IDENTITY (START WITH 10)',
    'ALTER TABLE ao ADD COLUMN n int GENERATED ALWAYS AS IDENTITY, ALTER n DROP IDENTITY',
    'ALTER TABLE ao ADD COLUMN n int GENERATED ALWAYS AS IDENTITY, ALTER n SET DEFAULT 5',
    -- generated columns
    'ALTER TABLE ao ADD COLUMN n int, ADD COLUMN g int GENERATED ALWAYS AS (coalesce(n, 0) + a) STORED, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 10, ADD COLUMN g int GENERATED ALWAYS AS (n + a) STORED, ALTER n SET DEFAULT 20',
    'ALTER TABLE ao ADD COLUMN g int GENERATED ALWAYS AS (a * 2) STORED, ALTER g SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN g int GENERATED ALWAYS AS (a * 2) STORED, ALTER g DROP EXPRESSION',
    'ALTER TABLE ao ALTER b TYPE varchar(20), ADD COLUMN g text GENERATED ALWAYS AS (b || ''!'') STORED',
    'ALTER TABLE ao ALTER b TYPE varchar(20), ALTER b SET DEFAULT ''twelve chars'', ADD COLUMN c text DEFAULT ''old'', ALTER c SET DEFAULT ''new''',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n TYPE bigint',
    -- types that have a default
    'ALTER TABLE ao ADD COLUMN t ao_text',
    'ALTER TABLE ao ADD COLUMN t ao_text NOT NULL',
    'ALTER TABLE ao ADD COLUMN t ao_text DEFAULT ''own''',
    'ALTER TABLE ao ADD COLUMN t ao_text DEFAULT NULL',
    'ALTER TABLE ao ADD COLUMN t ao_text, ALTER t SET DEFAULT ''own''',
    'ALTER TABLE ao ADD COLUMN t ao_over',
    'ALTER TABLE ao ADD COLUMN t ao_text[]',
    'ALTER TABLE ao ADD COLUMN t ao_text GENERATED ALWAYS AS (NULL) STORED'],
  'INSERT INTO ao (a) VALUES (3)',
  'SELECT string_agg(ao::text, '' '' ORDER BY a) FROM ao');
-- Types that there is no cast to: core looks for one in tables that it would rewrite.
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao (a int, b varchar(10), c timestamptz, d text) SERVER mot; INSERT INTO ao VALUES (1, ''one'', ''2026-01-01'', ''a longer text'')',
  ARRAY[
    'ALTER TABLE ao ALTER b TYPE int',
    'ALTER TABLE ao ALTER d TYPE bytea',
    'ALTER TABLE ao ALTER d TYPE int[]',
    'ALTER TABLE ao ALTER c TYPE box',
    'ALTER TABLE ao ALTER a TYPE date',
    'ALTER TABLE ao ALTER d TYPE ao_text',
    'ALTER TABLE ao ALTER d TYPE ao_given'],
  '',
  'SELECT string_agg(ao::text, '' '' ORDER BY a) FROM ao');
-- What was a generated column is none when another is added.
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao (a int, g int GENERATED ALWAYS AS (a * 2) STORED) SERVER mot; INSERT INTO ao VALUES (1), (2)',
  ARRAY[
    'ALTER TABLE ao ADD COLUMN h int GENERATED ALWAYS AS (g + 1) STORED, ALTER g DROP EXPRESSION',
    'ALTER TABLE ao ADD COLUMN h int GENERATED ALWAYS AS (g + 1) STORED, ALTER g DROP EXPRESSION, ALTER g SET DEFAULT 7',
    'ALTER TABLE ao ADD COLUMN h int GENERATED ALWAYS AS (g + 1) STORED',
    'ALTER TABLE ao ALTER a TYPE oid'],
  'INSERT INTO ao (a) VALUES (3)',
  'SELECT string_agg(ao::text, '' '' ORDER BY a) FROM ao');
-- Tables that have their columns from a type.
SELECT * FROM ao_compare(
  'CREATE TYPE ao_attributes AS (a int); CREATE TABLE ao OF ao_attributes; CREATE FOREIGN TABLE ao_1 () INHERITS (ao) SERVER mot; INSERT INTO ao VALUES (1);
   INSERT INTO ao_1 VALUES (2)',
  ARRAY['ALTER TYPE ao_attributes ADD ATTRIBUTE t ao_text CASCADE', 'ALTER TYPE ao_attributes ADD ATTRIBUTE n ao_given CASCADE, ADD ATTRIBUTE b int CASCADE'],
  'INSERT INTO ao_1 (a) VALUES (3)',
  'SELECT string_agg(ao::text, '' '' ORDER BY a) FROM ao');
-- On empty tables.
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao (a int, b varchar(10)) SERVER mot',
  ARRAY[
    'ALTER TABLE ao ADD COLUMN n int NOT NULL, ALTER n ADD GENERATED ALWAYS AS IDENTITY (START WITH 10)',
    'ALTER TABLE ao ADD COLUMN n int NOT NULL, ALTER n ADD GENERATED ALWAYS AS IDENTITY, ALTER n SET GENERATED BY DEFAULT SET START WITH 10 RESTART',
    'ALTER TABLE ao ADD COLUMN n int PRIMARY KEY, ALTER n ADD GENERATED BY DEFAULT AS IDENTITY',
    'ALTER TABLE ao ADD COLUMN n int NOT NULL, ALTER n SET DEFAULT 5'],
  'INSERT INTO ao (a) VALUES (3), (4)',
  'SELECT string_agg(ao::text, '' '' ORDER BY a) FROM ao');
-- Tables that inherit from a heap table, partitions, and tables that inherit from one of the kind, of which one has the column.
SELECT compared.* FROM unnest(ARRAY[
  'CREATE TABLE ao (a int, b int); CREATE FOREIGN TABLE ao_1 (c int) INHERITS (ao) SERVER mot; CREATE TABLE ao_2 () INHERITS (ao);
   CREATE FOREIGN TABLE ao_3 () INHERITS (ao_2) SERVER mot; INSERT INTO ao VALUES (0, 0); INSERT INTO ao_1 VALUES (1, 1, 1), (1, 1, NULL);
   INSERT INTO ao_2 VALUES (2, 2); INSERT INTO ao_3 VALUES (3, 3)',
  'CREATE FOREIGN TABLE ao (a int, b int) SERVER mot; CREATE FOREIGN TABLE ao_1 (c int) INHERITS (ao) SERVER mot; CREATE TABLE ao_2 () INHERITS (ao);
   CREATE FOREIGN TABLE ao_3 () INHERITS (ao_2) SERVER mot; INSERT INTO ao VALUES (0, 0); INSERT INTO ao_1 VALUES (1, 1, 1), (1, 1, NULL);
   INSERT INTO ao_2 VALUES (2, 2); INSERT INTO ao_3 VALUES (3, 3)',
  'CREATE TABLE ao (a int, b int) PARTITION BY LIST (a); CREATE FOREIGN TABLE ao_1 PARTITION OF ao FOR VALUES IN (1) SERVER mot;
   CREATE TABLE ao_2 PARTITION OF ao FOR VALUES IN (2); CREATE FOREIGN TABLE ao_3 PARTITION OF ao DEFAULT SERVER mot; INSERT INTO ao VALUES (1, 1), (2, 2), (3, 3)'])
  AS makes, LATERAL ao_compare(makes, ARRAY[
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int NOT NULL, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN c int DEFAULT 4, ALTER c SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN c int DEFAULT 4',
    'ALTER TABLE ao ADD COLUMN t ao_text, ALTER a SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ADD COLUMN g int GENERATED ALWAYS AS (n + a) STORED, ALTER n SET DEFAULT 5',
    'ALTER TABLE ao ADD COLUMN n int DEFAULT 4, ADD COLUMN m int DEFAULT 5, ALTER n SET DEFAULT 6, OWNER TO ao_other'],
  'INSERT INTO ao (a) VALUES (3); INSERT INTO ao_1 (a) VALUES (1)',
  'SELECT string_agg(tableoid::regclass || ao::text, '' '' ORDER BY tableoid::regclass::text, ao::text) FROM ao') AS compared;
-- Types of columns with indexes: those of tables that inherit, of constraints that the statement drops, of columns that it drops; comments stay.
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao (a int, b varchar(10), c int) SERVER mot; ALTER TABLE ao ADD CONSTRAINT ao_b UNIQUE NULLS NOT DISTINCT (b);
   CREATE INDEX ao_ab ON ao (a, b DESC); CREATE INDEX ao_bc ON ao (b COLLATE "C", c NULLS FIRST); CREATE INDEX ao_c ON ao (c);
   COMMENT ON INDEX ao_bc IS ''an index''; COMMENT ON INDEX ao_b IS ''the index of it''; COMMENT ON CONSTRAINT ao_b ON ao IS ''a constraint'';
   INSERT INTO ao VALUES (1, ''one'', 1), (2, NULL, 2)',
  ARRAY[
    'ALTER TABLE ao ALTER b TYPE varchar(20)',
    'ALTER TABLE ao ALTER b TYPE text COLLATE "C"',
    'ALTER TABLE ao ALTER b TYPE varchar(20), DROP CONSTRAINT ao_b',
    'ALTER TABLE ao ALTER b TYPE varchar(20), DROP CONSTRAINT IF EXISTS ao_c',
    'ALTER TABLE ao ALTER b TYPE varchar(20), DROP COLUMN a',
    'ALTER TABLE ao ALTER b TYPE varchar(20), DROP COLUMN a, ADD COLUMN a int',
    'ALTER TABLE ao ALTER b TYPE varchar(20), DROP CONSTRAINT ao_b, ADD CONSTRAINT ao_b UNIQUE (b)',
    'ALTER TABLE ao ALTER b TYPE varchar(20), DROP COLUMN b'],
  '',
  'SELECT string_agg(concat_ws('' '', indexrelid::regclass, indkey, indoption, indcollation::oid[]::regcollation[], indisunique, indnullsnotdistinct, conname,
                     obj_description(indexrelid, ''pg_class''), obj_description(con.oid, ''pg_constraint'')), e''\n    '' ORDER BY indexrelid::regclass::text)
   FROM pg_index LEFT JOIN pg_constraint con ON conindid = indexrelid WHERE indrelid = ''ao''::regclass');
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao (a int, b varchar(10) UNIQUE) SERVER mot; CREATE FOREIGN TABLE ao_1 (c int, b varchar(10), a int PRIMARY KEY, UNIQUE (b, a)) SERVER mot;
   CREATE INDEX ao_1_b ON ao_1 (b); ALTER TABLE ao_1 INHERIT ao; CREATE FOREIGN TABLE ao_2 () INHERITS (ao_1) SERVER mot;
   CREATE UNIQUE INDEX ao_2_b ON ao_2 (b); CREATE TABLE ao_3 (b varchar(10) UNIQUE) INHERITS (ao);
   INSERT INTO ao VALUES (1, ''one''); INSERT INTO ao_1 VALUES (1, ''one'', 1); INSERT INTO ao_2 VALUES (2, ''two'', 2); INSERT INTO ao_3 VALUES (3, ''three'')',
  ARRAY[
    'ALTER TABLE ao ALTER b TYPE varchar(20)',
    'ALTER TABLE ao ALTER b TYPE text, DROP COLUMN a',
    'ALTER TABLE ONLY ao ALTER b TYPE text'],
  'INSERT INTO ao_2 (a, b) VALUES (4, ''quite a long one'')',
  'SELECT string_agg(concat_ws('' '', indexrelid::regclass, indrelid::regclass, indkey, indisprimary), e''\n    '' ORDER BY indexrelid::regclass::text)
     || (SELECT e''\n    '' || string_agg(ao::text, '' '' ORDER BY ao::text) FROM ao)
   FROM pg_index WHERE indrelid::regclass::text LIKE ''ao%''');
-- No right is asked to make an index again.
CREATE SCHEMA ao_closed;
GRANT USAGE ON SCHEMA ao_closed TO ao_other;
SELECT * FROM ao_compare(
  'CREATE FOREIGN TABLE ao_closed.ao (a int PRIMARY KEY, b varchar(10) UNIQUE) SERVER mot; CREATE INDEX ao_ba ON ao_closed.ao (b, a);
   ALTER TABLE ao_closed.ao OWNER TO ao_other; SET LOCAL ROLE ao_other; INSERT INTO ao_closed.ao VALUES (1, ''one'')',
  ARRAY['ALTER TABLE ao_closed.ao ALTER b TYPE varchar(20)', 'CREATE INDEX ON ao_closed.ao (b)', 'ALTER TABLE ao_closed.ao ADD UNIQUE (a, b)'],
  'INSERT INTO ao_closed.ao VALUES (2, ''twelve chars'')',
  'SELECT string_agg(ao::text, '' '' ORDER BY a) FROM ao_closed.ao');
\pset tuples_only off
\pset format aligned
-- The indexes hold what there is.
CREATE FOREIGN TABLE ao (a int, b varchar(10) UNIQUE) SERVER mot;
CREATE FOREIGN TABLE ao_1 (c int, PRIMARY KEY (a), UNIQUE (b, a)) INHERITS (ao) SERVER mot;
INSERT INTO ao_1 SELECT i, 'row ' || i FROM generate_series(1, 100) i;
ALTER TABLE ao ALTER b TYPE text, ADD COLUMN n int DEFAULT 4, ALTER n SET DEFAULT 5;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM ao_1 WHERE b = 'row 50';
SELECT * FROM ao_1 WHERE b = 'row 50';
RESET enable_seqscan;
INSERT INTO ao_1 VALUES (1, 'a longer one than before');
SELECT rows, entries FROM mot.check('ao_1');
-- Event triggers are fired once, and see what comes before the rows are made true.
CREATE FUNCTION ao_tell() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE told text;
BEGIN
  IF tg_event = 'ddl_command_end' THEN
    SELECT string_agg(command_tag || ' ' || object_identity, ', ') INTO told FROM pg_event_trigger_ddl_commands();
  ELSIF tg_event = 'sql_drop' THEN
    SELECT string_agg(object_identity, ', ') INTO told FROM pg_event_trigger_dropped_objects();
  END IF;
  RAISE WARNING '%: % %', tg_event, tg_tag, told;
END $$;
SET client_min_messages = warning;
CREATE EVENT TRIGGER ao_start ON ddl_command_start EXECUTE FUNCTION ao_tell();
CREATE EVENT TRIGGER ao_end ON ddl_command_end EXECUTE FUNCTION ao_tell();
CREATE EVENT TRIGGER ao_drop ON sql_drop EXECUTE FUNCTION ao_tell();
ALTER TABLE ao ADD COLUMN m int DEFAULT 4, ALTER m SET DEFAULT 5;
ALTER TABLE ao ALTER b TYPE varchar;
DELETE FROM ao_1;
ALTER TABLE ao ADD COLUMN i int NOT NULL, ALTER i ADD GENERATED ALWAYS AS IDENTITY;
DROP EVENT TRIGGER ao_start;
DROP EVENT TRIGGER ao_end;
DROP EVENT TRIGGER ao_drop;
SET client_min_messages = error;
DROP FUNCTION ao_tell;
DROP FOREIGN TABLE ao CASCADE;
-- A heap table gets no column whose type has a default where memory-optimized tables store rows of it.
CREATE TABLE ao_row (a int);
CREATE FOREIGN TABLE ao_holder (r ao_row) SERVER mot;
INSERT INTO ao_holder VALUES ('(1)');
ALTER TABLE ao_row ADD COLUMN t ao_text;
ALTER TABLE ao_row ADD COLUMN t ao_text[], ADD COLUMN d ao_plain;
SELECT * FROM ao_holder;
CREATE TYPE ao_attributes AS (a int);
CREATE TABLE ao_typed OF ao_attributes;
CREATE FOREIGN TABLE ao_typed_holder (r ao_typed) SERVER mot;
CREATE FOREIGN TABLE ao_type_holder (r ao_attributes) SERVER mot;
INSERT INTO ao_type_holder VALUES ('(1)');
ALTER TYPE ao_attributes ADD ATTRIBUTE t ao_text CASCADE;
DROP FOREIGN TABLE ao_typed_holder;
ALTER TYPE ao_attributes ADD ATTRIBUTE t ao_text CASCADE;
SELECT * FROM ao_type_holder;
DROP FOREIGN TABLE ao_type_holder;
DROP TYPE ao_attributes CASCADE;
-- Nor a memory-optimized one where any table does.
CREATE FOREIGN TABLE ao_mot_row (a int) SERVER mot;
CREATE TABLE ao_heap_holder (r ao_mot_row);
ALTER TABLE ao_mot_row ADD COLUMN t ao_text;
DROP TABLE ao_heap_holder, ao_holder;
DROP TABLE ao_row, ao_mot_row;
DROP FUNCTION ao_compare, ao_try;
DROP DOMAIN ao_given, ao_strict, ao_plain, ao_over;
DROP TYPE ao_text CASCADE;
DROP SCHEMA ao_closed;
DROP ROLE ao_other;
