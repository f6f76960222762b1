-- Definitions that go past the usual way: below other tables, under other names. (What two sessions do to each other: isolation/specs/create_races,
-- publications.)

-- Publications send nothing of memory-optimized tables: none names a table that has them below it, and none comes below a table that one names.
SET client_min_messages = error;
CREATE TABLE cr_parted (a int, b int) PARTITION BY LIST (a);
CREATE TABLE cr_mid PARTITION OF cr_parted FOR VALUES IN (1, 2) PARTITION BY LIST (b);
CREATE FOREIGN TABLE cr_leaf PARTITION OF cr_mid FOR VALUES IN (1) SERVER mot;
CREATE TABLE cr_heap (a int);
CREATE TABLE cr_parent (a int);
CREATE FOREIGN TABLE cr_child () INHERITS (cr_parent) SERVER mot;
CREATE PUBLICATION cr_publication FOR TABLE cr_heap, cr_parted;
CREATE PUBLICATION cr_publication FOR TABLE ONLY cr_parted;
CREATE PUBLICATION cr_publication FOR TABLE cr_mid;
CREATE PUBLICATION cr_publication FOR TABLE cr_parent;
CREATE PUBLICATION cr_publication FOR TABLE cr_none;
CREATE PUBLICATION cr_publication FOR TABLE cr_heap, ONLY cr_parent;
ALTER PUBLICATION cr_publication ADD TABLE cr_parted;
ALTER PUBLICATION cr_publication SET TABLE cr_mid;
ALTER PUBLICATION cr_publication DROP TABLE cr_leaf;
ALTER TABLE cr_mid DETACH PARTITION cr_leaf;
ALTER PUBLICATION cr_publication ADD TABLE cr_parted;
ALTER TABLE cr_mid ATTACH PARTITION cr_leaf FOR VALUES IN (1);
CREATE FOREIGN TABLE cr_new PARTITION OF cr_mid FOR VALUES IN (2) SERVER mot;
CREATE TABLE cr_mid2 (a int, b int) PARTITION BY LIST (b);
ALTER TABLE cr_mid2 ATTACH PARTITION cr_leaf FOR VALUES IN (1);
ALTER TABLE cr_parted ATTACH PARTITION cr_mid2 FOR VALUES IN (3);
-- Heap partitions may come.
CREATE TABLE cr_part PARTITION OF cr_mid FOR VALUES IN (3);
-- One that is published no more.
ALTER PUBLICATION cr_publication DROP TABLE cr_parted;
ALTER TABLE cr_parted ATTACH PARTITION cr_mid2 FOR VALUES IN (3);
INSERT INTO cr_parted VALUES (3, 1);
SELECT tableoid::regclass, * FROM cr_parted;
-- All tables: memory-optimized ones are left out.
CREATE PUBLICATION cr_all FOR ALL TABLES;
SELECT tablename FROM pg_publication_tables WHERE pubname = 'cr_all' AND tablename LIKE 'cr\_%' ORDER BY 1;
DROP PUBLICATION cr_all;
-- Somebody else's.
CREATE ROLE cr_role;
SELECT format('GRANT CREATE ON DATABASE %I TO cr_role', current_database()) \gexec
SET ROLE cr_role;
CREATE PUBLICATION cr_others FOR TABLE cr_parted;
CREATE PUBLICATION cr_others FOR TABLE cr_leaf;
RESET ROLE;
DROP OWNED BY cr_role;
DROP ROLE cr_role;
DROP PUBLICATION cr_publication;
DROP TABLE cr_parted, cr_heap;
DROP FOREIGN TABLE cr_child;
DROP TABLE cr_parent;
RESET client_min_messages;

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
