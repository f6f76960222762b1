-- A server without the library in shared_preload_libraries: DDL on memory-optimized tables is refused, all else works.
\set VERBOSITY default
SHOW shared_preload_libraries;
SELECT * FROM kept;
-- in the same session as the first look-up of a table, and before it
\c
DROP TABLE kept;
\set SHOW_CONTEXT never
\set VERBOSITY terse
DROP FOREIGN TABLE kept;
DROP INDEX kept_v_idx;
DROP SCHEMA kept_schema CASCADE;
DROP OWNED BY kept_owner;
DROP SERVER mot CASCADE;
DROP EXTENSION mot;
DROP EXTENSION mot CASCADE;
ALTER TABLE kept ADD COLUMN w int DEFAULT 7;
ALTER FOREIGN TABLE kept ALTER v SET NOT NULL;
ALTER TABLE kept DROP COLUMN v;
ALTER TABLE kept RENAME TO other;
ALTER TABLE kept_parent ADD COLUMN w int DEFAULT 7;
CREATE TABLE kept_taken PARTITION OF kept_parent FOR VALUES IN (1);
CREATE TABLE kept_taken (id int, v int);
ALTER TABLE kept_parent ATTACH PARTITION kept_taken FOR VALUES IN (1);
DROP TABLE kept_taken;
CREATE TABLE kept_other (a int) PARTITION BY LIST (a);
ALTER TABLE kept_other ATTACH PARTITION kept_schema.inside DEFAULT;
DROP TABLE kept_other;
ALTER INDEX kept_v_idx RENAME TO other;
ALTER DOMAIN kept_domain ADD CHECK (VALUE > 100);
CREATE INDEX ON kept (v);
CREATE FOREIGN TABLE new (a int) SERVER mot;
TRUNCATE kept;
DO $$ BEGIN EXECUTE 'DROP TABLE kept'; END $$;
BEGIN;
CREATE TABLE ordinary (a int);
SAVEPOINT s;
DROP TABLE kept;
ROLLBACK TO s;
DROP TABLE ordinary;
COMMIT;
-- tables of the access method
SELECT * FROM kept_table;
\c
SELECT * FROM kept_table WHERE id = 1;
INSERT INTO kept_table VALUES (1);
UPDATE kept_table SET v = 1;
INSERT INTO referencing VALUES (1);
SELECT * FROM kept_parent WHERE id = 5;
INSERT INTO kept_parent VALUES (5);
COPY kept_table TO STDOUT;
DROP TABLE kept_table;
DROP TABLE kept_table CASCADE;
DROP INDEX kept_table_v;
TRUNCATE kept_table CASCADE;
ALTER TABLE kept_table ADD COLUMN w int DEFAULT 7;
ALTER TABLE kept_table ALTER v TYPE bigint;
ALTER TABLE kept_table SET ACCESS METHOD heap;
ALTER TABLE kept_table RENAME TO other;
ALTER TABLE kept_table DROP CONSTRAINT kept_table_pkey CASCADE;
ALTER TABLE kept_parent DETACH PARTITION kept_part;
CREATE INDEX ON kept_table (v);
REINDEX TABLE kept_table;
VACUUM kept_table;
VACUUM FULL kept_table;
ANALYZE kept_table;
CREATE TABLE new (a int) USING mot;
CREATE TABLE new USING mot AS SELECT 1 AS a;
CREATE MATERIALIZED VIEW new USING mot AS SELECT 1 AS a;
ALTER TABLE referencing SET ACCESS METHOD mot;
SET default_table_access_method = mot;
CREATE TABLE new (a int);
RESET default_table_access_method;
DO $$ BEGIN EXECUTE 'TRUNCATE kept_part'; END $$;
\d kept_table
-- what is not ours
CREATE TABLE ordinary (a int PRIMARY KEY);
ALTER TABLE ordinary ADD COLUMN b int DEFAULT 1;
CREATE INDEX ON ordinary (b);
CREATE FOREIGN DATA WRAPPER another;
CREATE SERVER another FOREIGN DATA WRAPPER another;
CREATE FOREIGN TABLE elsewhere (a int) SERVER another;
ALTER FOREIGN TABLE elsewhere ADD COLUMN b int DEFAULT 1;
DROP FOREIGN TABLE elsewhere;
DROP TABLE ordinary;
DROP FOREIGN DATA WRAPPER another CASCADE;
\d kept
-- an unprivileged user, and a session that replays with triggers off
SET ROLE kept_owner;
CREATE TEMP TABLE ordinary (a int);
DROP TABLE ordinary;
DROP TABLE owned;
RESET ROLE;
SET session_replication_role = replica;
DROP TABLE kept;
RESET session_replication_role;
-- giving the tables up: another database of the same server
\c gone
DROP EXTENSION mot CASCADE;
ALTER EVENT TRIGGER mot_require_preload DISABLE;
DROP EXTENSION mot CASCADE;
SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace;
