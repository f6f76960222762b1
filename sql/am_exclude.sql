-- Exclusion constraints with operators of btree: heap tables first, and then the same on memory-optimized ones.
SET client_min_messages = warning;
\getenv top PG_ABS_SRCDIR
\cd :top
\set both 'sql/forms/exclude.sql'
\set method heap
\i :both
\set method mot
\i :both
SELECT relname::text COLLATE "C", (mot.check(oid)).rows FROM pg_class WHERE relnamespace = 'am_exclude_mot'::regnamespace AND relkind = 'r' ORDER BY 1;
DROP SCHEMA am_exclude_heap, am_exclude_mot CASCADE;
