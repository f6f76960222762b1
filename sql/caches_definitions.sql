-- Definitions, of tables with rows, that look catalogs up while something is open. `.ci/asserts` runs this with core's caches thrown away at
-- every chance (debug_discard_caches).
SET client_min_messages = warning;
CREATE SCHEMA caches_definitions;
SET search_path = caches_definitions;
CREATE TABLE t (a int PRIMARY KEY, b varchar(10), c int CHECK (c < 100), d text DEFAULT 'd', e int GENERATED ALWAYS AS (c * 2) STORED) USING mot;
CREATE UNIQUE INDEX t_b ON t (b);
CREATE INDEX t_c_b ON t (c DESC, b);
CREATE INDEX t_e ON t (e);
INSERT INTO t SELECT g, 'b' || g, g FROM generate_series(1, 5) g;
-- keys that repeat, and what a constraint says
INSERT INTO t VALUES (1, 'x', 1);
INSERT INTO t VALUES (6, 'b1', 1);
INSERT INTO t VALUES (6, 'b6', 100);
CREATE UNIQUE INDEX ON t ((1), d);
CREATE UNIQUE INDEX t_d ON t (d);
-- types with and without a rewrite, of columns with indexes
ALTER TABLE t ALTER b TYPE varchar(20);
ALTER TABLE t ALTER d TYPE varchar(30), ALTER b TYPE text;
BEGIN;
CREATE INDEX t_new ON t (d, a);
ALTER TABLE t ADD COLUMN f numeric(6, 2) DEFAULT 1.50;
CREATE INDEX t_f ON t (f);
SAVEPOINT s;
ALTER TABLE t ALTER f TYPE bigint;
UPDATE t SET f = a WHERE a = 2;
ROLLBACK TO s;
SELECT a, f FROM t WHERE f = 1.50 ORDER BY a;
COMMIT;
ALTER TABLE t DROP COLUMN d, ADD UNIQUE (f, a);
VACUUM FULL t;
CLUSTER t USING t_b;
SELECT * FROM t ORDER BY a;
SELECT a FROM t WHERE f = 1.50 AND b > 'b2' ORDER BY a;
-- keys by an index that is there; both ways to another access method
CREATE UNIQUE INDEX t_using ON t (c);
ALTER TABLE t ADD CONSTRAINT t_using UNIQUE USING INDEX t_using;
ALTER TABLE t SET ACCESS METHOD heap;
SELECT a FROM t WHERE c = 3;
ALTER TABLE t SET ACCESS METHOD mot;
INSERT INTO t VALUES (7, 'b7', 3);
-- beside writers, and in place of another
CREATE INDEX CONCURRENTLY t_beside ON t (b, c);
REINDEX TABLE CONCURRENTLY t;
REINDEX INDEX t_e;
DROP INDEX CONCURRENTLY t_beside;
TRUNCATE t;
INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2);
SELECT rows, entries FROM mot.check('t');
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relnamespace = 'caches_definitions'::regnamespace ORDER BY 1;
-- partitions
CREATE TABLE p (a int, b int, c text) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY RANGE (b);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (0) TO (10) USING mot;
CREATE INDEX p21_b ON p21 (b);
CREATE INDEX p_b ON p (b);
ALTER TABLE p ADD PRIMARY KEY (a, b);
CREATE TABLE p3 (a int NOT NULL, b int NOT NULL, c text, PRIMARY KEY (a, b)) USING mot;
CREATE INDEX p3_b ON p3 (b);
INSERT INTO p3 VALUES (3, 3, 'three');
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES IN (3);
INSERT INTO p VALUES (1, 1, 'one'), (2, 2, 'two');
INSERT INTO p VALUES (1, 1, 'again');
UPDATE p SET a = a % 3 + 1, c = c || '!' WHERE b < 3;
ALTER TABLE p ALTER c TYPE varchar(20);
SELECT tableoid::regclass, * FROM p ORDER BY b;
SELECT c FROM p WHERE b = 3;
ALTER TABLE p DETACH PARTITION p3;
SELECT indexrelid::regclass, inhparent::regclass FROM pg_index LEFT JOIN pg_inherits ON inhrelid = indexrelid
  WHERE indrelid IN ('p1'::regclass, 'p21'::regclass, 'p3'::regclass) ORDER BY 1;
-- views of the access method, and a table made of a query
CREATE MATERIALIZED VIEW m USING mot AS SELECT a, b FROM t;
CREATE UNIQUE INDEX ON m (a);
INSERT INTO t VALUES (3, 'three', 3);
REFRESH MATERIALIZED VIEW CONCURRENTLY m;
REFRESH MATERIALIZED VIEW m;
SELECT * FROM m ORDER BY a;
CREATE TABLE made USING mot AS SELECT * FROM t;
CREATE TABLE alike (LIKE t INCLUDING ALL) USING mot;
INSERT INTO alike (a, b, c) SELECT a, b, c FROM made;
SELECT * FROM alike ORDER BY a;
DROP SCHEMA caches_definitions CASCADE;
