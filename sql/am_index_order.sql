-- The order in which a row's indexes are asked: on heap tables, then on memory-optimized ones.
SET client_min_messages = warning;
\set VERBOSITY terse
\getenv top PG_ABS_SRCDIR
\cd :top
\set changes 'sql/forms/index_order_changes.sql'
\set both 'sql/forms/index_order.sql'
\set method heap
\i :both
\set method mot
\i :both
SET mot.compiled_statements = always;
\i :changes
SET mot.compiled_statements = off;
\i :changes
SELECT * FROM t ORDER BY id;
SELECT (mot.check('t')).rows;
DROP SCHEMA am_index_order_heap, am_index_order_mot CASCADE;
