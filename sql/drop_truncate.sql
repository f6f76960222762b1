-- Everything that drops or empties, and that nothing stays behind in memory.
CREATE TEMP TABLE dt_before AS SELECT count(*) AS tables FROM mot.storages();
CREATE SCHEMA dt;
CREATE FOREIGN TABLE dt.one (a int PRIMARY KEY, b text) SERVER mot;
CREATE FOREIGN TABLE dt.two (a serial UNIQUE, b text) SERVER mot;
CREATE FOREIGN TABLE dt_three (a int PRIMARY KEY) SERVER mot;
CREATE TABLE dt_heap (a int PRIMARY KEY);
INSERT INTO dt.one SELECT i, i FROM generate_series(1, 100) i;
INSERT INTO dt.two (b) SELECT i FROM generate_series(1, 100) i;
INSERT INTO dt_three SELECT * FROM generate_series(1, 100) i;
-- TRUNCATE
TRUNCATE dt.one;
SELECT count(*) FROM dt.one;
INSERT INTO dt.one VALUES (1, 'after');
INSERT INTO dt.one VALUES (1, 'after');
SELECT * FROM dt.one WHERE a = 1;
BEGIN;
TRUNCATE dt.two, dt_three, dt_heap RESTART IDENTITY;
INSERT INTO dt.two (b) VALUES ('x') RETURNING a;
SELECT count(*) FROM dt.two;
ROLLBACK;
SELECT count(*) FROM dt.two;
INSERT INTO dt.two (b) VALUES ('x') RETURNING a;
BEGIN;
SAVEPOINT s;
TRUNCATE dt.two;
INSERT INTO dt.two VALUES (1, 'in savepoint');
ROLLBACK TO s;
SELECT count(*) FROM dt.two;
TRUNCATE dt.two;
INSERT INTO dt.two VALUES (1, 'kept');
COMMIT;
SELECT * FROM dt.two;
SELECT n, rows FROM unnest(ARRAY['dt.one', 'dt.two', 'dt_three']) n, mot.check(n::regclass);
-- An insert in the transaction of the TRUNCATE, and before it.
BEGIN;
INSERT INTO dt_three VALUES (1000);
TRUNCATE dt_three;
INSERT INTO dt_three VALUES (1), (2);
COMMIT;
SELECT * FROM dt_three ORDER BY a;
-- DROP: rolled back, then for good
BEGIN;
DROP FOREIGN TABLE dt_three;
SELECT * FROM dt_three;
ROLLBACK;
SELECT * FROM dt_three ORDER BY a;
BEGIN;
DROP TABLE dt_three, dt_heap;
ROLLBACK;
SELECT rows FROM mot.check('dt_three');
DROP TABLE dt_three, dt_heap;
DROP TABLE IF EXISTS dt_three, dt_heap;
DROP TABLE dt_three;
CREATE VIEW dt.view AS SELECT * FROM dt.one;
DROP TABLE dt.one;
DROP TABLE dt.one CASCADE;
DROP SCHEMA dt CASCADE;
SELECT count(*) FROM pg_class WHERE relname LIKE 'dt\_%' AND relkind IN ('r', 'i') AND relname <> 'dt_before';
SELECT count(*) - (SELECT tables FROM dt_before) AS left_over FROM mot.storages();
-- DROP OWNED
CREATE ROLE dt_role;
CREATE SCHEMA dt_own AUTHORIZATION dt_role;
GRANT USAGE ON FOREIGN SERVER mot TO dt_role;
SET ROLE dt_role;
CREATE FOREIGN TABLE dt_own.t (a int PRIMARY KEY) SERVER mot;
INSERT INTO dt_own.t VALUES (1);
RESET ROLE;
DROP OWNED BY dt_role;
DROP ROLE dt_role;
SELECT count(*) - (SELECT tables FROM dt_before) AS left_over FROM mot.storages();
-- Created and dropped in one transaction
BEGIN;
CREATE FOREIGN TABLE dt_short (a int PRIMARY KEY) SERVER mot;
INSERT INTO dt_short VALUES (1);
DROP FOREIGN TABLE dt_short;
CREATE FOREIGN TABLE dt_short (a text PRIMARY KEY) SERVER mot;
INSERT INTO dt_short VALUES ('a');
COMMIT;
SELECT * FROM dt_short;
SELECT rows FROM mot.check('dt_short');
DROP TABLE dt_short;
-- Another database, copied by both strategies and dropped with tables in it.
SELECT current_database() AS here \gset
CREATE DATABASE mot_regress_template TEMPLATE template0;
\c mot_regress_template
SET client_min_messages = warning;
CREATE EXTENSION mot;
CREATE TABLE dt_template (a int PRIMARY KEY, b text) USING mot;
CREATE INDEX ON dt_template (b);
INSERT INTO dt_template SELECT i, 'original ' || i FROM generate_series(1, 1000) i;
UPDATE dt_template SET b = 'changed' WHERE a <= 10;
DELETE FROM dt_template WHERE a > 990;
ALTER TABLE dt_template ADD c int DEFAULT 7;
CREATE INDEX dt_missing ON dt_template (c, a);
CREATE TABLE dt_parts (a int, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TABLE dt_part PARTITION OF dt_parts FOR VALUES FROM (0) TO (10) USING mot;
INSERT INTO dt_parts VALUES (1);
CREATE TABLE dt_child (a int REFERENCES dt_template ON DELETE CASCADE) USING mot;
INSERT INTO dt_child VALUES (1), (2);
CREATE TABLE dt_empty (a int UNIQUE) USING mot;
\c :here
CREATE DATABASE mot_regress_copy TEMPLATE mot_regress_template;
CREATE DATABASE mot_regress_files TEMPLATE mot_regress_template STRATEGY file_copy;
\c mot_regress_template
UPDATE dt_template SET b = 'of the template';
DELETE FROM dt_parts;
\c mot_regress_copy
SET enable_seqscan = off;
SELECT count(*), sum(a), sum(c), count(*) FILTER (WHERE b = 'changed') FROM dt_template;
SELECT a, b, c FROM dt_template WHERE b = 'original 500';
SELECT a FROM dt_template WHERE c = 7 AND a BETWEEN 5 AND 7;
SELECT * FROM dt_parts;
DELETE FROM dt_template WHERE a = 1;
SELECT * FROM dt_child;
INSERT INTO dt_child VALUES (999);
INSERT INTO dt_template VALUES (2);
INSERT INTO dt_empty VALUES (1), (1);
SELECT relname, (mot.check(oid)).rows FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'mot') AND relkind = 'r' ORDER BY 1;
\c mot_regress_files
SELECT count(*), sum(a), sum(c), count(*) FILTER (WHERE b = 'changed') FROM dt_template;
SELECT relname, (mot.check(oid)).rows FROM pg_class WHERE relam = (SELECT oid FROM pg_am WHERE amname = 'mot') AND relkind = 'r' ORDER BY 1;
TRUNCATE dt_template CASCADE;
\c :here
DROP DATABASE mot_regress_copy;
DROP DATABASE mot_regress_files;
-- A copy of a copy of an own database; what fails leaves nothing.
\c mot_regress_template
CREATE DATABASE mot_regress_copy TEMPLATE mot_regress_template;
CREATE DATABASE mot_regress_copy TEMPLATE mot_regress_template;
CREATE DATABASE mot_regress_files TEMPLATE mot_regress_template TABLESPACE none_of_these;
CREATE DATABASE mot_regress_files TEMPLATE mot_regress_copy;
\c mot_regress_files
SELECT count(*) FROM dt_template WHERE b = 'of the template';
\c :here
DROP DATABASE mot_regress_template;
DROP DATABASE mot_regress_copy;
DROP DATABASE mot_regress_files;
SELECT count(*) FROM mot.storages() WHERE database NOT IN (SELECT oid FROM pg_database);
-- A list in which heap tables and ours inherit from each other.
CREATE FOREIGN TABLE dl (a int) SERVER mot;
CREATE TABLE dl_heap () INHERITS (dl);
CREATE TABLE dl_parted (a int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE dl_part PARTITION OF dl_parted DEFAULT SERVER mot;
DROP TABLE dl;
DROP TABLE dl_parted, dl, dl_heap, dl_part;
SELECT count(*) FROM pg_class WHERE relname LIKE 'dl%';
