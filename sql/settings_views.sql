-- The settings: all of them, with what they are set by.
SELECT name, vartype, context, unit FROM pg_settings WHERE name LIKE 'mot.%' ORDER BY name COLLATE "C";
SET mot.max_memory = '1GB';
SET mot.no_such_setting = 1;

-- The views: their columns are an interface.
SELECT c.relname, string_agg(a.attname, ' ' ORDER BY a.attnum) AS columns
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'mot'::regnamespace AND c.relkind = 'v'
GROUP BY c.relname ORDER BY c.relname COLLATE "C";
-- Each says what it is.
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'mot'::regnamespace AND c.relkind = 'v' AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL);
-- So does each function, but for those of tests, which releases do not have.
SELECT oid::regprocedure AS unexplained FROM pg_proc WHERE pronamespace = 'mot'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
  AND proname !~ '^(fail_at|index_key_kinds|is_own|key_kind|pause|plant_|request_checkpoint|resume|row_bytes_exactly|run_|wait_until_)';
SELECT state, failure FROM mot.stat_recovery;
SELECT worker_pid > 0 AS worker_is_up, checkpoints_failed FROM mot.stat_checkpoint;

-- Figures follow what is done.
CREATE FOREIGN TABLE viewed (id int PRIMARY KEY, v int) SERVER mot;
INSERT INTO viewed SELECT g, g FROM generate_series(1, 100) g;
UPDATE viewed SET v = v + 1 WHERE id <= 10;
DELETE FROM viewed WHERE id > 90;
SELECT schemaname, relname, rows, rows_inserted, rows_updated, rows_deleted FROM mot.stat_tables WHERE relname = 'viewed';
SELECT relname, indexrelname, is_unique FROM mot.stat_indexes WHERE relname = 'viewed';
SELECT arena_bytes_used BETWEEN 1 AND arena_bytes_limit AS fits, row_bytes > 0 AS has_rows,
       block_bytes_free BETWEEN 0 AND arena_bytes_used - row_bytes AS is_part FROM mot.stat_memory;
CREATE TEMP TABLE before AS SELECT commits, aborts, log_records FROM mot.stat_transactions;
UPDATE viewed SET v = 0 WHERE id = 1;
BEGIN;
UPDATE viewed SET v = 1 WHERE id = 1;
ROLLBACK;
SELECT t.commits > b.commits AS committed, t.aborts > b.aborts AS aborted, t.log_records > b.log_records AS logged
FROM mot.stat_transactions t, before b;

-- A unique key met twice; what transactions do to each other is counted in isolation/specs/statistics.spec.
CREATE TEMP TABLE violations AS SELECT unique_violations FROM mot.stat_transactions;
INSERT INTO viewed VALUES (1, 1);
INSERT INTO viewed VALUES (1, 1) ON CONFLICT DO NOTHING;
UPDATE viewed SET id = 2 WHERE id = 1;
SELECT t.unique_violations - v.unique_violations AS violations FROM mot.stat_transactions t, violations v;

-- A checkpoint of the server completes only after ours.
UPDATE viewed SET v = 2 WHERE id = 1;
CHECKPOINT;
SELECT s.covered_lsn = c.redo_lsn AS is_covered FROM mot.stat_checkpoint s, pg_control_checkpoint() c;
-- Nothing was changed since: nothing is written but the list of files.
SELECT pg_switch_wal() IS NOT NULL AS switched;
CHECKPOINT;
SELECT s.covered_lsn = c.redo_lsn AS is_covered, bytes AS bytes_written, bytes_reused > 0 AS reuses
FROM mot.stat_checkpoint s, pg_control_checkpoint() c;
SELECT * FROM mot.stat_progress_checkpoint;

-- Who may look: members of pg_monitor, at every view and at what it is made of. Functions for tests have no comment, and mot.check asks for the table's owner itself.
CREATE ROLE mot_viewer;
WITH shown AS (
  SELECT c.oid::regclass::text AS what, has_table_privilege('mot_viewer', c.oid, 'SELECT') AS anybody,
         has_table_privilege('pg_monitor', c.oid, 'SELECT') AS monitor
  FROM pg_class c WHERE c.relnamespace = 'mot'::regnamespace AND c.relkind = 'v'
  UNION ALL
  SELECT p.oid::regprocedure::text, has_function_privilege('mot_viewer', p.oid, 'EXECUTE'), has_function_privilege('pg_monitor', p.oid, 'EXECUTE')
  FROM pg_proc p WHERE p.pronamespace = 'mot'::regnamespace AND p.proretset AND p.proname <> 'check' AND obj_description(p.oid, 'pg_proc') IS NOT NULL)
SELECT count(*) > 15 AS are_asked, array_agg(what) FILTER (WHERE anybody) AS for_anybody, array_agg(what) FILTER (WHERE NOT monitor) AS for_no_monitor
FROM shown;
SET ROLE mot_viewer;
SELECT * FROM mot.stat_memory;
RESET ROLE;
GRANT pg_monitor TO mot_viewer;
SET ROLE mot_viewer;
SELECT format('SELECT count(*) >= 0 AS %I FROM mot.%1$I', relname) FROM pg_class
WHERE relnamespace = 'mot'::regnamespace AND relkind = 'v' ORDER BY relname COLLATE "C" \gexec
RESET ROLE;
DROP ROLE mot_viewer;
DROP FOREIGN TABLE viewed;
