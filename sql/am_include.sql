-- Indexes with included columns: heap tables first, and then the same on memory-optimized ones.
SET client_min_messages = warning;
\getenv top PG_ABS_SRCDIR
\cd :top
\set both 'sql/forms/include.sql'
\set method heap
\i :both
\set method mot
\i :both
SELECT relname::text COLLATE "C", (mot.check(oid)).rows FROM pg_class WHERE relnamespace = 'am_include_mot'::regnamespace AND relkind = 'r' ORDER BY 1;
SET search_path = am_include_mot;
\d t
DROP SCHEMA am_include_heap, am_include_mot CASCADE;
