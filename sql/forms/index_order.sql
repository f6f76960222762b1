-- Run by am_index_order.sql for each access method, which :method names.
SELECT 'am_index_order_' || :'method' AS schema \gset
CREATE SCHEMA :schema;
SET search_path = :schema;
SET default_table_access_method = :method;
CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text);
CREATE UNIQUE INDEX t_a ON t (a);
CREATE UNIQUE INDEX t_b ON t (b);
INSERT INTO t VALUES (1, 1, 1, 'one'), (2, 2, 2, 'two');
-- as they were made
\i :changes
-- a new file keeps the index's turn
REINDEX INDEX t_pkey;
\i :changes
REINDEX INDEX t_a;
\i :changes
REINDEX TABLE t;
REINDEX INDEX t_a;
REINDEX INDEX t_pkey;
\i :changes
BEGIN;
REINDEX INDEX t_a;
INSERT INTO t VALUES (3, 1, 2);
ROLLBACK;
\i :changes
CLUSTER t USING t_b;
\i :changes
ALTER TABLE t ALTER c TYPE varchar(9) USING left(c, 2);
\i :changes
TRUNCATE t;
INSERT INTO t VALUES (1, 1, 1, 'one'), (2, 2, 2, 'two');
\i :changes
-- an index that is made again has its turn last
DROP INDEX t_a;
CREATE UNIQUE INDEX t_a ON t (a);
\i :changes
REINDEX INDEX CONCURRENTLY t_b;
\i :changes
ALTER TABLE t DROP CONSTRAINT t_pkey;
ALTER TABLE t ADD PRIMARY KEY (id);
\i :changes
-- partial ones, and on expressions
DROP INDEX t_a, t_b;
CREATE UNIQUE INDEX t_a ON t ((a + 0));
CREATE UNIQUE INDEX t_b ON t (b) WHERE b > 0;
\i :changes
REINDEX INDEX t_pkey;
REINDEX INDEX t_a;
\i :changes
-- more than are entered together
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, a int, b int, c text);
CREATE UNIQUE INDEX t_a ON t (a);
CREATE INDEX t_1 ON t (c, a);
CREATE INDEX t_2 ON t (c, b);
CREATE INDEX t_3 ON t (c, id);
CREATE INDEX t_4 ON t (a, c);
CREATE INDEX t_5 ON t (b, c);
CREATE INDEX t_6 ON t (b, a);
CREATE INDEX t_7 ON t (b, id);
CREATE INDEX t_8 ON t (a, id);
CREATE UNIQUE INDEX t_b ON t (b);
INSERT INTO t VALUES (1, 1, 1, 'one'), (2, 2, 2, 'two');
DROP INDEX t_4;
REINDEX INDEX t_a;
REINDEX INDEX t_pkey;
\i :changes
