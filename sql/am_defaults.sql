-- What default_table_access_method = mot means, which tables cannot be memory-optimized, and where indexes move.
SET client_min_messages = notice;
CREATE SCHEMA am_defaults;
SET search_path = am_defaults;
CREATE FUNCTION methods(like_name text) RETURNS TABLE (name text, kind "char", method name) LANGUAGE sql AS $$
  SELECT relname, relkind, amname FROM pg_class c LEFT JOIN pg_am m ON m.oid = relam WHERE relname LIKE like_name AND relkind IN ('r', 'm', 'p') ORDER BY 1 $$;
SET default_table_access_method = mot;
CREATE TABLE d_plain (a int PRIMARY KEY);
CREATE TABLE d_heap (a int) USING heap;
CREATE TABLE d_as AS SELECT 1 AS a;
SELECT 1 AS a INTO d_into;
CREATE MATERIALIZED VIEW d_view AS SELECT 1 AS a;
CREATE TABLE d_like (LIKE d_heap);
CREATE TABLE d_child () INHERITS (d_heap);
CREATE TABLE d_parted (a int) PARTITION BY LIST (a);
CREATE TABLE d_part PARTITION OF d_parted FOR VALUES IN (1);
CREATE TABLE d_part_heap PARTITION OF d_parted FOR VALUES IN (2) USING heap;
CREATE SCHEMA d_schema CREATE TABLE d_in_schema (a int PRIMARY KEY);
-- temporary and unlogged ones, too
CREATE TEMP TABLE d_temp (a int);
CREATE TEMP TABLE d_temp_as AS SELECT 1 AS a;
SELECT 1 AS a INTO TEMP d_temp_into;
CREATE TABLE pg_temp.d_temp_named (a int);
SET search_path = pg_temp, am_defaults;
CREATE TABLE d_temp_path (a int);
CREATE TABLE d_temp_path_as AS SELECT 1 AS a;
SET search_path = am_defaults;
CREATE UNLOGGED TABLE d_unlogged (a int);
CREATE UNLOGGED TABLE d_unlogged_as AS SELECT 1 AS a;
SELECT * FROM methods('d\_%');
RESET default_table_access_method;
CREATE TEMP TABLE e_temp (a int) USING mot;
CREATE TEMP TABLE e_temp_as USING mot AS SELECT 1 AS a;
CREATE TABLE pg_temp.e_temp_named (a int) USING mot;
CREATE UNLOGGED TABLE e_unlogged (a int) USING mot;
CREATE UNLOGGED TABLE e_unlogged_as USING mot AS SELECT 1 AS a;
CREATE TABLE e_catalog (a int) USING mot WITH (user_catalog_table = true);
SELECT * FROM methods('e\_%');
ALTER TABLE d_plain SET (user_catalog_table = true);
ALTER TABLE d_plain SET (fillfactor = 50);

-- an extension's own tables
SET default_table_access_method = mot;
CREATE FUNCTION say() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE '% under %', tg_tag, current_setting('default_table_access_method'); END $$;
CREATE EVENT TRIGGER am_defaults ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION', 'CREATE VIEW') EXECUTE FUNCTION say();
CREATE VIEW d_said AS SELECT 1 AS a;
CREATE EXTENSION pg_stat_statements SCHEMA am_defaults;
DROP EVENT TRIGGER am_defaults;
SET client_min_messages = warning;
ALTER EXTENSION pg_stat_statements UPDATE;
SET client_min_messages = notice;
SHOW default_table_access_method;
\set VERBOSITY terse
CREATE EXTENSION pg_stat_statements;
\set VERBOSITY default
SHOW default_table_access_method;
RESET default_table_access_method;
CREATE TABLE x_table (a int);
ALTER EXTENSION pg_stat_statements ADD TABLE x_table;
ALTER TABLE x_table SET ACCESS METHOD mot;
ALTER EXTENSION pg_stat_statements DROP TABLE x_table;
ALTER TABLE x_table SET ACCESS METHOD mot;
DROP EXTENSION pg_stat_statements;
SELECT * FROM methods('x\_%');

-- indexes move to another tablespace, and are built there
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE am_space LOCATION '';
CREATE TABLE moved (a int PRIMARY KEY, b int) USING mot;
CREATE INDEX moved_b ON moved (b);
CREATE INDEX moved_there ON moved (b, a) TABLESPACE am_space;
CREATE UNIQUE INDEX moved_heap ON d_heap (a);
INSERT INTO moved SELECT g, -g FROM generate_series(1, 10) g;
SET enable_seqscan = off;
CREATE FUNCTION places() RETURNS TABLE (index_name name, method name, place name) LANGUAGE sql AS $$
  SELECT c.relname, amname, spcname FROM pg_class c JOIN pg_am m ON m.oid = relam LEFT JOIN pg_tablespace s ON s.oid = reltablespace WHERE c.relname LIKE 'moved%' AND relkind = 'i' ORDER BY 1 $$;
ALTER INDEX moved_b SET TABLESPACE am_space;
ALTER INDEX moved_b SET TABLESPACE am_space;
SELECT a FROM moved WHERE b = -7;
ALTER TABLE moved_pkey SET TABLESPACE am_space;
INSERT INTO moved VALUES (7, 0);
SELECT * FROM places();
ALTER INDEX ALL IN TABLESPACE am_space SET TABLESPACE pg_default;
SELECT * FROM places();
INSERT INTO moved VALUES (7, 0);
SELECT a FROM moved WHERE b = -7;
BEGIN;
ALTER INDEX ALL IN TABLESPACE pg_default OWNED BY CURRENT_USER SET TABLESPACE am_space;
INSERT INTO moved VALUES (11, -11);
SELECT a FROM moved WHERE b = -11;
ROLLBACK;
INSERT INTO moved VALUES (7, 0);
INSERT INTO moved VALUES (11, -11);
SELECT a FROM moved WHERE b = -11;
REINDEX (TABLESPACE am_space) INDEX moved_b;
SELECT a FROM moved WHERE b = -11;
SELECT * FROM places();
ALTER INDEX moved_b SET TABLESPACE nowhere;
RESET enable_seqscan;
DROP TABLE moved;
DROP TABLESPACE am_space;

SET client_min_messages = error;
DROP SCHEMA d_schema CASCADE;
DROP SCHEMA am_defaults CASCADE;
