-- CREATE INDEX, REINDEX, DROP INDEX and REFRESH MATERIALIZED VIEW CONCURRENTLY on tables of the access method
\set ON_ERROR_STOP off
CREATE SCHEMA am_concurrently;
SET search_path = am_concurrently, public;
CREATE VIEW indexes AS SELECT i.relname AS index, amname, indisunique AS uniq, indisready AS ready, indisvalid AS valid, indislive AS live
  FROM pg_index x JOIN pg_class i ON i.oid = indexrelid JOIN pg_am m ON m.oid = i.relam WHERE i.relnamespace = 'am_concurrently'::regnamespace
  ORDER BY 1;
CREATE TABLE t (a int PRIMARY KEY, b int, c text COLLATE "C") USING mot;
INSERT INTO t SELECT i, i % 100, 'v' || i FROM generate_series(1, 5000) i;
UPDATE t SET b = b + 1 WHERE a % 7 = 0;
DELETE FROM t WHERE a % 11 = 0;
CREATE INDEX CONCURRENTLY t_b ON t (b);
CREATE UNIQUE INDEX CONCURRENTLY t_c ON t (c);
CREATE INDEX CONCURRENTLY IF NOT EXISTS t_c ON t (c);
SELECT * FROM indexes;
SELECT rows FROM mot.check('t');
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE c = 'v100';
SELECT * FROM t WHERE c = 'v100';
SELECT count(*) FROM t WHERE b = 7;
SET enable_seqscan = on;
SET enable_indexscan = off;
SELECT count(*) FROM t WHERE b = 7;
RESET enable_indexscan;
-- not in a transaction
BEGIN;
CREATE INDEX CONCURRENTLY ON t (b, c);
ROLLBACK;
-- a duplicate: the index stays, invalid, and refuses nobody
CREATE UNIQUE INDEX CONCURRENTLY t_u ON t (b);
SELECT * FROM indexes;
INSERT INTO t VALUES (5001, 7, 'x');
INSERT INTO t VALUES (5002, 7, 'x');
INSERT INTO t VALUES (5002, 7, 'y') ON CONFLICT (c) DO NOTHING;
INSERT INTO t VALUES (5003, 7, 'y') ON CONFLICT (c) DO UPDATE SET b = 8;
SELECT rows FROM mot.check('t');
-- an invalid index is rebuilt beside writers, or not, once it can be; CONCURRENTLY passes over it for a table
REINDEX INDEX CONCURRENTLY t_u;
SELECT * FROM indexes;
DROP INDEX CONCURRENTLY t_u_ccnew;
REINDEX TABLE CONCURRENTLY t;
REINDEX INDEX t_u;
DELETE FROM t WHERE a > 100 OR a % 7 = 0;
REINDEX INDEX CONCURRENTLY t_u;
SELECT * FROM indexes;
INSERT INTO t VALUES (101, 8, 'z');
DROP INDEX CONCURRENTLY t_u;
INSERT INTO t VALUES (101, 8, 'z');
DROP INDEX CONCURRENTLY IF EXISTS t_u;
SELECT rows FROM mot.check('t');
-- keys of constraints
DROP INDEX CONCURRENTLY t_pkey;
REINDEX INDEX CONCURRENTLY t_pkey;
CREATE TABLE child (a int REFERENCES t) USING mot;
INSERT INTO child VALUES (1);
INSERT INTO child VALUES (11);
REINDEX TABLE CONCURRENTLY t;
INSERT INTO child VALUES (11);
INSERT INTO t VALUES (1, 1, 'again');
SELECT * FROM indexes;
-- a key that is too long
CREATE TABLE long (a text) USING mot;
INSERT INTO long VALUES (repeat('x', 20000));
CREATE INDEX CONCURRENTLY long_a ON long (a);
INSERT INTO long VALUES (repeat('y', 20000));
DELETE FROM long WHERE a LIKE 'x%';
REINDEX INDEX CONCURRENTLY long_a;
DELETE FROM long;
REINDEX INDEX CONCURRENTLY long_a;
INSERT INTO long VALUES (repeat('y', 20000));
SELECT * FROM indexes WHERE index LIKE 'long%';
-- an index that cannot be is refused before it is made
CREATE INDEX CONCURRENTLY ON t USING hash (c);
SELECT count(*) FROM indexes;
-- many at once
\c -
SET search_path = am_concurrently, public;
DROP INDEX CONCURRENTLY long_a_ccnew;
REINDEX SCHEMA CONCURRENTLY am_concurrently;
REINDEX DATABASE CONCURRENTLY :DBNAME;
SELECT * FROM indexes;
SELECT rows FROM mot.check('t');
-- partitions
CREATE TABLE p (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20) USING mot;
INSERT INTO p SELECT i, i FROM generate_series(0, 19) i;
CREATE INDEX CONCURRENTLY ON p (b);
CREATE INDEX p_b ON ONLY p (b);
CREATE INDEX CONCURRENTLY p1_b ON p1 (b);
CREATE INDEX CONCURRENTLY p2_b ON p2 (b);
ALTER INDEX p_b ATTACH PARTITION p1_b;
ALTER INDEX p_b ATTACH PARTITION p2_b;
REINDEX TABLE CONCURRENTLY p;
REINDEX INDEX CONCURRENTLY p_b;
DROP INDEX CONCURRENTLY p_b;
SELECT * FROM indexes WHERE index LIKE 'p%';
-- a materialized view, with rows too long for a page of the heap
CREATE TABLE base (a int PRIMARY KEY, b int, c text) USING mot;
INSERT INTO base SELECT i, i, 'v' || i FROM generate_series(1, 100) i;
CREATE MATERIALIZED VIEW v USING mot AS SELECT a, b, c FROM base;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
CREATE UNIQUE INDEX ON v (a);
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
UPDATE base SET b = -b, c = (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) i) WHERE a % 10 = 0;
DELETE FROM base WHERE a % 10 = 1;
INSERT INTO base VALUES (101, 101, NULL), (102, NULL, 'x');
BEGIN;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
SELECT count(*), sum(b), sum(length(c)) FROM v;
ROLLBACK;
SELECT count(*), sum(b), sum(length(c)) FROM v;
SET default_table_access_method = mot;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
RESET default_table_access_method;
SELECT count(*), sum(b), sum(length(c)) FROM v;
(TABLE v EXCEPT TABLE base) UNION ALL (TABLE base EXCEPT TABLE v);
SELECT rows FROM mot.check('v');
REFRESH MATERIALIZED VIEW CONCURRENTLY v WITH NO DATA;
-- an error in the middle leaves nothing
CREATE OR REPLACE FUNCTION checked(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF $1 = 50 THEN RAISE 'no'; END IF; RETURN $1; END $$;
CREATE MATERIALIZED VIEW w USING mot AS SELECT a, checked(a) AS b FROM base WHERE a <> 50;
CREATE UNIQUE INDEX ON w (a);
DELETE FROM base WHERE a = 49;
UPDATE base SET a = 49 WHERE a = 50;
CREATE OR REPLACE FUNCTION checked(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF $1 = 49 THEN RAISE 'no'; END IF; RETURN $1; END $$;
REFRESH MATERIALIZED VIEW CONCURRENTLY w;
SELECT relname FROM pg_class WHERE relname LIKE 'pg_temp_%' AND relkind = 'r';
CREATE OR REPLACE FUNCTION checked(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
REFRESH MATERIALIZED VIEW CONCURRENTLY w;
SELECT count(*), sum(b) FROM w;
SELECT amname FROM pg_class JOIN pg_am m ON m.oid = relam WHERE relname IN ('v', 'w');
-- who may not refresh it
CREATE ROLE mot_no_owner;
GRANT USAGE ON SCHEMA am_concurrently TO mot_no_owner;
SET ROLE mot_no_owner;
REFRESH MATERIALIZED VIEW CONCURRENTLY am_concurrently.v;
RESET ROLE;

SET client_min_messages = error;
DROP SCHEMA am_concurrently CASCADE;
DROP ROLE mot_no_owner;
