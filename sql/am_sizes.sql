-- PostgreSQL's own functions of sizes tell what tables and indexes take in memory.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE TABLE sized (id int PRIMARY KEY, v text UNIQUE) USING mot;
CREATE INDEX sized_expression ON sized (lower(v));
CREATE TABLE sized_heap (id int PRIMARY KEY, v text) USING heap;
CREATE FUNCTION sizes(of regclass) RETURNS TABLE (main bigint, fork bigint, vm bigint, alone bigint, indexes bigint, total bigint) LANGUAGE sql
  AS 'SELECT pg_relation_size(of), pg_relation_size(of, ''main''), pg_relation_size(of, ''vm''), pg_table_size(of), pg_indexes_size(of), pg_total_relation_size(of)';
-- an empty one: its indexes are there
SELECT main, fork, vm, alone, indexes > 0 AS has_indexes, total = indexes AS is_sum FROM sizes('sized');
SELECT main > 0 AND main < 2000 AS is_small, main = alone AND main = fork AND main = total AS is_same, indexes FROM sizes('sized_pkey');
INSERT INTO sized SELECT g, 'value ' || g FROM generate_series(1, 200000) g;
-- rows are told as the extension's own function tells them
SELECT main = mot.table_size('sized') AS is_own, main = alone AS is_table, vm, total = main + indexes AS is_sum FROM sizes('sized');
SELECT indexes = (SELECT sum(pg_relation_size(indexrelid)) FROM pg_index WHERE indrelid = 'sized'::regclass) AS is_sum FROM sizes('sized');
-- large indexes are estimated, small ones counted
SELECT indexrelid::regclass, pg_relation_size(indexrelid) / mot.index_size(indexrelid::regclass)::float8 BETWEEN 0.8 AND 1.25 AS is_near FROM pg_index WHERE indrelid = 'sized'::regclass ORDER BY 1;
SELECT main AS before FROM sizes('sized') \gset
DELETE FROM sized WHERE id > 100;
SELECT main < :before / 2 AS is_less FROM sizes('sized');
-- heap tables, others without rows, and what is not there
SELECT main, vm, alone >= 0 AS has_size, total = alone + indexes AS is_sum FROM sizes('sized_heap');
CREATE TABLE sized_parent (id int PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE sized_part PARTITION OF sized_parent FOR VALUES IN (1) USING mot;
CREATE VIEW sized_view AS SELECT pg_total_relation_size('sized') > 0 AS has_size, pg_get_viewdef('pg_tables'::regclass) IS NOT NULL AS has_text;
SELECT main, indexes, total FROM sizes('sized_parent');
SELECT total > 0 AS has_size FROM sizes('sized_part');
SELECT * FROM sized_view;
SELECT pg_get_viewdef('sized_view') ~ 'mot\.' AS names_ours;
SELECT * FROM sizes(NULL);
SELECT * FROM sizes(4000000000::oid::regclass);
SELECT pg_relation_size('sized', 'nothing');
SELECT pg_relation_size('nothing');
-- by anybody, as of heap tables; of own temporary tables, and in the transaction that makes a table
CREATE ROLE sized_nobody;
SET ROLE sized_nobody;
SELECT total > 0 AS has_size FROM sizes('sized');
-- but by nobody who may not call core's function
BEGIN;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION pg_catalog.pg_table_size(regclass) FROM PUBLIC;
SET ROLE sized_nobody;
SELECT pg_table_size('sized');
ROLLBACK;
RESET ROLE;
DROP ROLE sized_nobody;
-- a heap table's index is told while somebody has the table
BEGIN;
LOCK TABLE sized_heap IN ACCESS EXCLUSIVE MODE;
SELECT current_database() AS database, format('SELECT pg_relation_size(%s) > 0 AS has_size', indexrelid) AS query
  FROM pg_index WHERE indrelid = 'public.sized_heap'::regclass LIMIT 1 \gset
\setenv SIZED_DATABASE :database
\setenv SIZED_QUERY :query
\! PGOPTIONS='-c lock_timeout=2s' psql -X -d "$SIZED_DATABASE" -c "$SIZED_QUERY"
ROLLBACK;
-- where the extension is not there, a function of the name is somebody else's
CREATE DATABASE sized_without TEMPLATE template0;
\c sized_without
CREATE SCHEMA mot;
CREATE FUNCTION mot.pg_table_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint';
SELECT pg_table_size('pg_class') > 0 AS is_core;
\c :database
SET client_min_messages = warning;
DROP DATABASE sized_without;
CREATE TEMP TABLE sized_temporary (id int PRIMARY KEY, v text) USING mot;
INSERT INTO sized_temporary SELECT g, repeat('x', 100) FROM generate_series(1, 100) g;
SELECT main > 10000 AS has_rows, total > main AS has_index FROM sizes('sized_temporary');
BEGIN;
CREATE TABLE sized_new (id int PRIMARY KEY) USING mot;
SELECT main, total > 0 AS has_index FROM sizes('sized_new');
ROLLBACK;
PREPARE size_of AS SELECT pg_table_size($1) > 0 AS has_size FROM sized WHERE id = 1;
EXECUTE size_of('sized');
EXECUTE size_of('sized_heap');
DROP TABLE sized, sized_heap, sized_parent, sized_temporary CASCADE;
DROP FUNCTION sizes;
