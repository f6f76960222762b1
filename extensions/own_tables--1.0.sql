CREATE TABLE plain (id int PRIMARY KEY, v text UNIQUE);
SELECT pg_extension_config_dump('plain', 'WHERE id > 1');
INSERT INTO plain VALUES (1, 'one');
CREATE TABLE as_query AS SELECT * FROM plain;
SELECT 1 AS id INTO into_table;
CREATE TABLE like_table (LIKE plain INCLUDING ALL);
CREATE TABLE child () INHERITS (plain);
CREATE TYPE composite AS (id int);
CREATE TABLE typed OF composite (PRIMARY KEY (id));
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE attached (id int PRIMARY KEY);
ALTER TABLE parted ATTACH PARTITION attached FOR VALUES FROM (10) TO (20);
CREATE MATERIALIZED VIEW view_of_rows AS SELECT * FROM plain;
CREATE UNLOGGED TABLE unlogged (id int);
CREATE SCHEMA own_tables_more CREATE TABLE inside (id int PRIMARY KEY);
DO $$ BEGIN CREATE TABLE in_do (id int PRIMARY KEY); EXECUTE 'CREATE TABLE executed_in_do AS SELECT 1 AS id'; END $$;
CREATE FUNCTION make(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE own_tables.%I (id int PRIMARY KEY)', name);
  EXECUTE format('INSERT INTO own_tables.%I VALUES (1)', name);
END $$;
SELECT make('by_plpgsql');
CREATE FUNCTION make_by_sql() RETURNS void LANGUAGE sql AS 'CREATE TABLE own_tables.by_sql (id int)';
SELECT make_by_sql();
-- Rewritten, and caught.
ALTER TABLE like_table ALTER id TYPE bigint;
DO $$
BEGIN
  BEGIN
    CREATE TABLE undone (id int);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN CREATE TABLE behind_an_error (id int);
  END;
END $$;
-- Said by name.
CREATE TABLE said (id int PRIMARY KEY) USING mot;
