-- Preloaded again: nothing was lost, nothing was left over but what was given up.
SELECT rows FROM mot.check('kept');
SELECT rows FROM mot.check('kept_schema.inside');
SELECT s.rows, s.relation::regclass FROM mot.storages() s JOIN pg_database d ON d.oid = s.database AND d.datname = current_database() ORDER BY 2;
SELECT count(*) FROM mot.storages() s JOIN pg_database d ON d.oid = s.database AND d.datname = 'gone';
DROP FOREIGN TABLE kept;
DROP EXTENSION mot CASCADE;
