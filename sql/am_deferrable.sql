-- Deferrable unique keys: heap tables first, and then the same on memory-optimized ones.
SET client_min_messages = warning;
\getenv top PG_ABS_SRCDIR
\cd :top
\set both 'sql/forms/deferrable.sql'
\set method heap
\i :both
\set method mot
\i :both
SELECT relname::text COLLATE "C", (mot.check(oid)).rows FROM pg_class WHERE relnamespace = 'am_deferrable_mot'::regnamespace AND relkind = 'r' ORDER BY 1;
SET search_path = am_deferrable_mot;
SELECT indexrelname::text COLLATE "C", is_unique FROM mot.stat_indexes WHERE schemaname = 'am_deferrable_mot' AND relname IN ('t', 'late') ORDER BY 1;
-- who replicates is not asked, as on heap
SET session_replication_role = replica;
UPDATE t SET u = 2;
RESET session_replication_role;
SELECT (mot.check('t')).rows;
DROP SCHEMA am_deferrable_heap, am_deferrable_mot CASCADE;
