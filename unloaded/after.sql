-- Preloaded again: nothing was lost, nothing was left over but what was given up.
SELECT rows FROM mot.check('kept');
SELECT rows FROM mot.check('kept_schema.inside');
SELECT rows, entries FROM mot.check('kept_table');
SELECT rows FROM mot.check('kept_part');
SET enable_seqscan = off;
SELECT * FROM kept_table WHERE v = 7;
RESET enable_seqscan;
INSERT INTO referencing VALUES (1);
INSERT INTO referencing VALUES (101);
DROP TABLE kept_table CASCADE;
SELECT s.rows, s.relation::regclass FROM mot.storages() s JOIN pg_database d ON d.oid = s.database AND d.datname = current_database() ORDER BY 2;
SELECT count(*) FROM mot.storages() s JOIN pg_database d ON d.oid = s.database AND d.datname = 'gone';
DROP FOREIGN TABLE kept;
DROP EXTENSION mot CASCADE;
