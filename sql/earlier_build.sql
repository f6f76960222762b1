-- Without its handler the wrapper has no tables at all.
ALTER FOREIGN DATA WRAPPER mot NO HANDLER;
CREATE FOREIGN TABLE eb (a int) SERVER mot;
-- A foreign table of the server mot, as a data directory of an earlier build has it: nothing uses or changes it.
ALTER FOREIGN DATA WRAPPER mot NO VALIDATOR;
CREATE FOREIGN TABLE eb (a int, b text) SERVER mot;
ALTER FOREIGN DATA WRAPPER mot HANDLER mot.fdw_handler VALIDATOR mot.fdw_validator;
\d eb
SELECT * FROM eb;
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY terse
INSERT INTO eb VALUES (1, 'one');
UPDATE eb SET a = 2;
DELETE FROM eb;
COPY (SELECT * FROM eb) TO stdout;
COPY eb FROM stdin;
1	one
\.
TRUNCATE eb;
LOCK eb;
ANALYZE eb;
ALTER FOREIGN TABLE eb ADD COLUMN c int DEFAULT 5;
ALTER TABLE eb ADD COLUMN c int DEFAULT 5;
ALTER TABLE eb RENAME TO eb2;
ALTER TABLE eb RENAME a TO c;
ALTER FOREIGN TABLE eb SET SCHEMA pg_catalog;
COMMENT ON FOREIGN TABLE eb IS 'nothing';
CREATE INDEX ON eb (a);
DROP FOREIGN TABLE eb;
SET client_min_messages = error;
DROP EXTENSION mot CASCADE;
RESET client_min_messages;
SELECT * FROM mot.check('eb');
\set VERBOSITY default
SELECT attname FROM pg_attribute WHERE attrelid = 'eb'::regclass AND attnum > 0;
ALTER FOREIGN DATA WRAPPER mot NO HANDLER;
DROP FOREIGN TABLE eb;
ALTER FOREIGN DATA WRAPPER mot HANDLER mot.fdw_handler;
