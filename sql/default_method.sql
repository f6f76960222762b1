-- default_table_access_method = mot: plain CREATE TABLE makes memory-optimized tables, and statements that tools use work on them.
SET default_table_access_method = mot;
CREATE TABLE cts (id serial PRIMARY KEY, name varchar(20) NOT NULL UNIQUE, qty int DEFAULT 3 CHECK (qty > 0),
  at timestamptz DEFAULT '2020-01-01', ident bigint GENERATED ALWAYS AS IDENTITY) WITH (fillfactor = 70);
\d cts
INSERT INTO cts (name) VALUES ('a'), ('b') RETURNING id, name, qty, ident;
CREATE TABLE IF NOT EXISTS cts (a int);
CREATE TABLE cts_bad (a int) WITH (nonsense = 70);
CREATE TABLE cts_space (a int PRIMARY KEY USING INDEX TABLESPACE pg_default) TABLESPACE pg_default;
CREATE TABLE cts_space2 (a int) TABLESPACE nowhere;
ALTER TABLE cts SET (fillfactor = 50, autovacuum_enabled = off);
ALTER TABLE cts SET (nonsense = 1);
ALTER TABLE cts RESET (fillfactor);
ALTER TABLE cts ADD COLUMN more text;
ALTER TABLE cts ALTER more SET DEFAULT 'm', ADD UNIQUE (qty, id);
CREATE INDEX ON cts (qty) WITH (fillfactor = 90);
COMMENT ON TABLE cts IS 'a comment';
SELECT obj_description('cts'::regclass);
-- What stays a heap table, and what does not
CREATE TEMP TABLE cts_temp (a int PRIMARY KEY);
CREATE UNLOGGED TABLE cts_unlogged (a int PRIMARY KEY);
CREATE TABLE cts_heap (a int PRIMARY KEY) USING heap;
CREATE TABLE cts_partitioned (a int) PARTITION BY HASH (a);
CREATE TABLE cts_partition PARTITION OF cts_partitioned FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE TABLE cts_inherits () INHERITS (cts_heap);
CREATE TYPE cts_type AS (a int);
CREATE TABLE cts_typed OF cts_type;
CREATE TABLE pg_temp.cts_temp2 (a int);
SELECT relname, amname, relpersistence FROM pg_class LEFT JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'cts%' AND relkind IN ('r', 'p') ORDER BY 1;
-- Constraints between tables of both kinds, LIKE, AS EXECUTE
CREATE TABLE cts_fk (a int REFERENCES cts, b int, FOREIGN KEY (b) REFERENCES cts_heap);
CREATE TABLE cts_like (LIKE cts);
PREPARE cts_query AS SELECT 1 AS a;
CREATE TABLE cts_as AS EXECUTE cts_query;
DROP TABLE cts_fk, cts_like, cts_as;
-- CREATE TABLE AS and SELECT INTO
\set QUIET off
CREATE TABLE cts_as AS SELECT i AS a, 'v' || i AS b, NULL::numeric(8,2) AS c FROM generate_series(1, 5) i;
CREATE TABLE IF NOT EXISTS cts_as AS SELECT 1 AS a;
CREATE TABLE cts_as2 (x, y) AS WITH w AS (SELECT a, b FROM cts_as) SELECT * FROM w WHERE a > 3;
CREATE TABLE cts_as3 AS TABLE cts_as WITH NO DATA;
SELECT a, count(*) AS n INTO cts_as4 FROM cts_as GROUP BY a;
CREATE TEMP TABLE cts_as_temp AS SELECT 1 AS a;
CREATE TABLE cts_as5 (x, y, z) AS SELECT 1;
\set QUIET on
-- Whoever may create the table may fill it.
CREATE ROLE cts_role;
GRANT CREATE ON SCHEMA public TO cts_role;
ALTER DEFAULT PRIVILEGES FOR ROLE cts_role REVOKE INSERT ON TABLES FROM cts_role;
SET ROLE cts_role;
CREATE TABLE cts_as7 AS SELECT 1 AS a;
INSERT INTO cts_as7 VALUES (2);
SELECT amname, (SELECT sum(a) FROM cts_as7) FROM pg_class JOIN pg_am a ON a.oid = relam WHERE relname = 'cts_as7';
DROP TABLE cts_as7;
RESET ROLE;
DROP OWNED BY cts_role;
DROP ROLE cts_role;
DO $$ DECLARE low int := 2; BEGIN CREATE TABLE cts_as6 AS SELECT * FROM cts_as WHERE a > low; END $$;
\d cts_as
SELECT * FROM cts_as ORDER BY a;
SELECT * FROM cts_as2 ORDER BY x;
SELECT count(*) FROM cts_as3;
SELECT sum(n) FROM cts_as4;
SELECT count(*) FROM cts_as6;
SELECT relname, amname FROM pg_class JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'cts\_as%' ORDER BY 1;
DROP TABLE cts_as, cts_as2, cts_as3, cts_as4, cts_as6, cts_as_temp;
-- TRUNCATE, COPY FREEZE, VACUUM, ANALYZE, LOCK, DROP: as tools use them
BEGIN;
TRUNCATE cts;
COPY cts (id, name) FROM stdin WITH (FREEZE ON);
1	one
2	two
3	three
\.
COMMIT;
COPY cts (id, name) FROM stdin (FREEZE);
4	four
\.
SELECT id, name, qty, more FROM cts ORDER BY id;
VACUUM cts;
VACUUM (ANALYZE, VERBOSE OFF) cts, cts_heap;
VACUUM FULL cts;
VACUUM FREEZE ANALYZE cts;
ANALYZE cts;
SELECT reltuples FROM pg_class WHERE relname = 'cts';
SELECT count(*) > 0 AS has_statistics FROM pg_stats WHERE tablename = 'cts';
INSERT INTO cts (id, name) VALUES (5, 'five');
VACUUM ANALYZE;
SELECT reltuples FROM pg_class WHERE relname = 'cts';
INSERT INTO cts (id, name) VALUES (6, 'six');
ANALYZE;
SELECT reltuples FROM pg_class WHERE relname = 'cts';
BEGIN;
VACUUM cts;
ROLLBACK;
LOCK TABLE cts;
BEGIN;
LOCK TABLE cts, cts_heap IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE cts IN ACCESS EXCLUSIVE MODE NOWAIT;
SELECT relation::regclass, mode FROM pg_locks WHERE relation IN ('cts'::regclass, 'cts_heap'::regclass) AND pid = pg_backend_pid() ORDER BY 1, 2;
COMMIT;
SELECT rows FROM mot.check('cts');
DROP TABLE IF EXISTS cts, cts_space, cts_heap, cts_nothing CASCADE;
-- Per role and database; an extension's tables stay heap tables; off means off.
RESET default_table_access_method;
CREATE TABLE cts_off (a int);
SELECT amname FROM pg_class JOIN pg_am a ON a.oid = relam WHERE relname = 'cts_off';
DROP TABLE cts_off, cts_unlogged, cts_partitioned, cts_typed, cts_temp;
DROP TYPE cts_type;
SET default_table_access_method = mot;
-- In a read-only transaction nothing is looked up.
BEGIN READ ONLY;
SAVEPOINT s;
CREATE TABLE ct_nowhere.t AS SELECT 1 AS a;
ROLLBACK TO s;
SELECT 1 AS a INTO ct_nowhere.t;
ROLLBACK TO s;
CREATE TABLE ct_nowhere.t (a int);
ROLLBACK;
RESET default_table_access_method;
