-- Where a table access method is easily wrong, in statements that a session runs alone: heap tables and memory-optimized ones run the same file.
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA am_traps;
SET search_path = am_traps;
-- What came of each step, the errors by their codes.
CREATE TABLE seen (method text, step text, result text, PRIMARY KEY (method, step)) USING heap;
CREATE FUNCTION attempt(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;
-- Rows that the planner expects of a query.
CREATE FUNCTION expected_rows(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
\getenv top PG_ABS_SRCDIR
\cd :top
\set both 'sql/traps/both.sql'
\set started :ECHO
\set ECHO none
\set VERBOSITY sqlstate
\set method heap
\i :both
\set method mot
\i :both
\set ECHO :started
\set VERBOSITY terse
SELECT step, result FROM seen WHERE method = 'heap' ORDER BY step COLLATE "C";
SELECT step, h.result AS heap, m.result AS mot FROM (SELECT * FROM seen WHERE method = 'heap') h FULL JOIN (SELECT * FROM seen WHERE method = 'mot') m USING (step)
  WHERE h.result IS DISTINCT FROM m.result ORDER BY step COLLATE "C";
-- All of them, and their indexes, are of the methods they should be of.
SELECT nspname, relkind, amname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace JOIN pg_am a ON a.oid = relam
  WHERE nspname LIKE 'am\_traps\_%' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT c.relname, k.rows FROM pg_class c, LATERAL mot.check(c.oid::regclass) k WHERE relnamespace = 'am_traps_mot'::regnamespace AND relkind = 'r' ORDER BY 1;
-- The files of the catalogs are written anew while there are memory-optimized tables.
SET search_path = am_traps_mot, am_traps;
VACUUM FULL pg_class;
VACUUM FULL pg_attribute;
VACUUM FULL pg_index;
CLUSTER pg_type USING pg_type_oid_index;
REINDEX TABLE pg_class;
REINDEX INDEX pg_class_oid_index;
SELECT n FROM hidden WHERE id = 7;
UPDATE hidden SET n = n + 1 WHERE id = 7;
SELECT count(*) FROM child JOIN parent ON parent.id = child.parent;
BEGIN;
CREATE TABLE beside (id int PRIMARY KEY) USING mot;
INSERT INTO beside VALUES (1);
REINDEX TABLE pg_class;
INSERT INTO beside VALUES (1);
ROLLBACK;
-- Several workers may be planned for the build of an index, which the engine builds itself.
SET max_parallel_maintenance_workers = 4;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
ALTER TABLE hidden SET (parallel_workers = 4);
CREATE INDEX hidden_n ON hidden (n);
ALTER TABLE hidden ADD UNIQUE (n, id);
REINDEX TABLE hidden;
ALTER TABLE hidden ALTER n TYPE bigint;
SET enable_seqscan = off;
SELECT count(*) FROM hidden WHERE n > 0;
RESET enable_seqscan;
SELECT rows, entries FROM mot.check('hidden');
RESET max_parallel_maintenance_workers;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
SET client_min_messages = error;
DROP SCHEMA am_traps CASCADE;
DROP SCHEMA am_traps_heap CASCADE;
DROP SCHEMA am_traps_mot CASCADE;
