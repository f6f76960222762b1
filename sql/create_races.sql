-- Definitions that go past the usual way: under other names. What two sessions do to each other is
-- in isolation/specs/create_races.

-- A wrapper of another name, and a second one: their tables are memory-optimized all the same.
CREATE FOREIGN TABLE cr_named (a int PRIMARY KEY, b int) SERVER mot;
INSERT INTO cr_named VALUES (1, 1), (2, 2);
ALTER FOREIGN DATA WRAPPER mot RENAME TO cr_wrapper;
ALTER FUNCTION mot.fdw_handler RENAME TO cr_handler;
CREATE FOREIGN DATA WRAPPER cr_second HANDLER mot.cr_handler;
CREATE SERVER cr_second FOREIGN DATA WRAPPER cr_second;
CREATE FOREIGN TABLE cr_two (a int PRIMARY KEY, b int) SERVER cr_second;
INSERT INTO cr_two VALUES (1, 1), (2, 2);
CREATE TYPE cr_row AS (x int);
ALTER TABLE cr_named ADD COLUMN c int DEFAULT 3;
ALTER TABLE cr_two ADD COLUMN c int DEFAULT 3, ADD COLUMN r cr_row;
SELECT * FROM cr_named;
SELECT * FROM cr_two;
ALTER TABLE cr_named ALTER b TYPE text;
ALTER TABLE cr_two ALTER b TYPE text;
ALTER TYPE cr_row ALTER ATTRIBUTE x TYPE text;
CREATE UNIQUE INDEX cr_two_b ON cr_two (b);
INSERT INTO cr_two VALUES (3, 2);
SELECT rows, entries FROM mot.check('cr_named');
SELECT rows, entries FROM mot.check('cr_two');
ANALYZE;
SELECT relname, reltuples FROM pg_class WHERE relname IN ('cr_named', 'cr_two') ORDER BY 1;
DROP FOREIGN TABLE cr_two;
DROP SERVER cr_second;
DROP FOREIGN DATA WRAPPER cr_second;
DROP FOREIGN TABLE cr_named;
DROP TYPE cr_row;
ALTER FUNCTION mot.cr_handler RENAME TO fdw_handler;
ALTER FOREIGN DATA WRAPPER cr_wrapper RENAME TO mot;
SELECT count(*) FROM mot.storages() s JOIN pg_database d ON d.oid = s.database AND datname = current_database() LEFT JOIN pg_class c ON c.relfilenode = s.relation WHERE c.oid IS NULL;

-- A library that looks at plan states is not loaded while a query runs that has none.
CREATE FOREIGN TABLE cr_read (a int PRIMARY KEY) SERVER mot;
INSERT INTO cr_read VALUES (1), (2);
SET mot.compiled_statements = always;
SET auto_explain.log_min_duration = 0;
SET enable_seqscan = off;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cr_read WHERE a = 1;
FETCH c;
LOAD 'auto_explain';
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM cr_read WHERE a = 2;
FETCH c;
CLOSE c;
LOAD 'auto_explain';
DECLARE c CURSOR FOR SELECT * FROM cr_read WHERE a = 2;
FETCH c;
COMMIT;
DROP FOREIGN TABLE cr_read;
