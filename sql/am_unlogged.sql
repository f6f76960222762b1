-- Unlogged tables: how they are made, what they become, and what core keeps for them beside the rows. ha/t/047_unlogged.pl has what a crash leaves.
SET client_min_messages = warning;
CREATE SCHEMA am_unlogged;
SET search_path = am_unlogged;
-- Kind, persistence, method, and whether there is a file for after a crash.
CREATE FUNCTION kinds(like_name text) RETURNS TABLE (name text, kind "char", persistence "char", method name, init boolean) LANGUAGE sql AS $$
  SELECT relname, relkind, relpersistence, amname, (pg_stat_file(pg_relation_filepath(c.oid) || '_init', true)).size IS NOT NULL
  FROM pg_class c LEFT JOIN pg_am m ON m.oid = relam
  WHERE relname ~ like_name AND relnamespace = 'am_unlogged'::regnamespace AND relkind IN ('r', 'm', 'i', 'S') ORDER BY relname COLLATE "C" $$;
-- Rows of a table, by a scan of all and by its primary key.
CREATE FUNCTION found(of regclass) RETURNS TABLE (scanned bigint, by_key bigint, checked bigint) LANGUAGE plpgsql AS $$
BEGIN
  SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = on;
  EXECUTE format('SELECT count(*) FROM %s WHERE a > 0', of) INTO scanned;
  SET LOCAL enable_indexscan = on; SET LOCAL enable_seqscan = off;
  EXECUTE format('SELECT count(*) FROM %s WHERE a > 0', of) INTO by_key;
  SELECT rows INTO checked FROM mot.check(of);
  RETURN NEXT;
END $$;

CREATE UNLOGGED TABLE u (a int PRIMARY KEY, b text, c int GENERATED ALWAYS AS IDENTITY) USING mot;
CREATE INDEX u_b ON u (b);
INSERT INTO u SELECT i, 'b' || i % 7 FROM generate_series(1, 100) i;
UPDATE u SET b = 'changed' WHERE a % 10 = 0;
DELETE FROM u WHERE a > 90;
SELECT * FROM found('u');
SELECT name, kind, persistence, method, init FROM kinds('^u(_b|_pkey)?$');
SELECT relname, rows, rows_inserted, rows_updated, rows_deleted FROM mot.stat_tables WHERE relname = 'u';
BEGIN;
INSERT INTO u VALUES (1000, 'rolled back');
SAVEPOINT s;
UPDATE u SET b = 'gone' WHERE a < 10;
ROLLBACK TO s;
UPDATE u SET b = 'kept' WHERE a = 1;
COMMIT;
SELECT a, b FROM u WHERE a IN (1, 2, 1000) ORDER BY a;
INSERT INTO u VALUES (1, 'twice');
INSERT INTO u VALUES (1, 'upserted') ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a, b;

-- No record of the log is of its rows.
SELECT log_bytes AS before FROM mot.stat_transactions \gset
INSERT INTO u SELECT i, 'more' FROM generate_series(2001, 2100) i;
UPDATE u SET b = 'm' WHERE a > 2000;
DELETE FROM u WHERE a > 2050;
COPY u (a, b) FROM stdin;
3001	copied
3002	copied
\.
SELECT log_bytes - :before AS logged FROM mot.stat_transactions;
-- A table that is logged beside it is.
CREATE TABLE l (a int PRIMARY KEY, b text) USING mot;
SELECT log_bytes AS before FROM mot.stat_transactions \gset
BEGIN;
INSERT INTO l VALUES (1, 'one');
INSERT INTO u (a, b) SELECT i, 'both' FROM generate_series(4001, 4100) i;
COMMIT;
SELECT log_bytes - :before BETWEEN 1 AND 200 AS logged FROM mot.stat_transactions;
SELECT * FROM found('u');

-- Other ways to one.
SET default_table_access_method = mot;
CREATE UNLOGGED TABLE d (a int PRIMARY KEY);
CREATE UNLOGGED TABLE d_as AS SELECT a, b FROM u;
SELECT a, b INTO UNLOGGED d_into FROM u;
CREATE UNLOGGED TABLE d_child () INHERITS (d);
CREATE UNLOGGED TABLE d_like (LIKE u INCLUDING ALL);
CREATE UNLOGGED TABLE d_heap (a int PRIMARY KEY) USING heap;
CREATE UNLOGGED TABLE d_catalog (a int) WITH (user_catalog_table = true);
CREATE UNLOGGED MATERIALIZED VIEW d_view AS SELECT 1 AS a;
SELECT * FROM kinds('^d_?');
SELECT (SELECT count(*) FROM d_as) AS as_, (SELECT count(*) FROM d_into) AS into_;
RESET default_table_access_method;

-- Persistence and method change.
INSERT INTO d_heap SELECT generate_series(1, 50);
ALTER TABLE d_heap SET ACCESS METHOD mot;
SELECT * FROM found('d_heap');
SELECT * FROM kinds('^d_heap');
ALTER TABLE d_heap SET LOGGED;
SELECT * FROM found('d_heap');
SELECT * FROM kinds('^d_heap');
SELECT log_bytes AS before FROM mot.stat_transactions \gset
INSERT INTO d_heap VALUES (51);
SELECT log_bytes > :before AS logged FROM mot.stat_transactions;
ALTER TABLE d_heap SET UNLOGGED;
SELECT * FROM found('d_heap');
SELECT * FROM kinds('^d_heap');
ALTER TABLE d_heap SET UNLOGGED, ALTER a TYPE bigint;
ALTER TABLE d_heap SET ACCESS METHOD heap;
SELECT * FROM kinds('^d_heap');
SELECT count(*), sum(a) FROM d_heap;
BEGIN;
ALTER TABLE u SET LOGGED;
UPDATE u SET b = 'while logged' WHERE a < 5;
ROLLBACK;
SELECT * FROM found('u');
SELECT * FROM kinds('^u');
BEGIN;
SAVEPOINT s;
ALTER TABLE u SET LOGGED;
ROLLBACK TO s;
UPDATE u SET b = 'behind it' WHERE a < 5;
ALTER TABLE u SET LOGGED;
COMMIT;
SELECT * FROM found('u');
SELECT * FROM kinds('^u');
SELECT count(*) FROM u WHERE b = 'behind it';
ALTER TABLE u SET UNLOGGED;
SELECT * FROM kinds('^u');
INSERT INTO u (a, b) VALUES (5000, 'next') RETURNING c;

-- What makes a new file makes the one for after a crash, too.
TRUNCATE u;
SELECT * FROM kinds('^u_');
SELECT * FROM found('u');
INSERT INTO u (a, b) SELECT i, 'b' || i FROM generate_series(1, 100) i;
VACUUM FULL u;
CLUSTER u USING u_b;
VACUUM (ANALYZE) u;
REINDEX TABLE u;
REINDEX INDEX CONCURRENTLY u_b;
CREATE INDEX CONCURRENTLY u_a_b ON u (a, b);
ALTER TABLE u ADD COLUMN d int DEFAULT 7;
ALTER TABLE u ALTER b TYPE varchar(20);
ALTER TABLE u ADD CONSTRAINT u_c UNIQUE (c);
SELECT * FROM kinds('^u_');
SELECT * FROM found('u');
BEGIN;
CREATE UNLOGGED TABLE made (a int PRIMARY KEY) USING mot;
INSERT INTO made VALUES (1);
TRUNCATE made;
INSERT INTO made VALUES (2);
COMMIT;
SELECT * FROM found('made');
SELECT * FROM kinds('^made');
DROP INDEX u_a_b;

-- Constraints between tables, by core's rules.
CREATE UNLOGGED TABLE child (a int PRIMARY KEY, p int REFERENCES u ON DELETE CASCADE) USING mot;
INSERT INTO child VALUES (1, 1), (2, 2);
INSERT INTO child VALUES (3, -3);
DELETE FROM u WHERE a = 1;
SELECT * FROM child;
CREATE TABLE bad (p int REFERENCES u) USING mot;
ALTER TABLE child SET LOGGED;
CREATE UNLOGGED TABLE to_logged (p int REFERENCES l) USING mot;
INSERT INTO to_logged VALUES (1);
INSERT INTO to_logged VALUES (9);

-- Partitions of both kinds.
CREATE TABLE parted (a int PRIMARY KEY, b text) PARTITION BY RANGE (a);
CREATE UNLOGGED TABLE part_u PARTITION OF parted FOR VALUES FROM (0) TO (100) USING mot;
CREATE TABLE part_l PARTITION OF parted FOR VALUES FROM (100) TO (200) USING mot;
CREATE UNLOGGED TABLE part_h PARTITION OF parted FOR VALUES FROM (200) TO (300) USING heap;
CREATE INDEX ON parted (b);
INSERT INTO parted SELECT i, 'p' || i FROM generate_series(10, 290, 10) i;
UPDATE parted SET a = a + 105 WHERE a = 10 OR a = 110;
SELECT tableoid::regclass, count(*) FROM parted GROUP BY 1 ORDER BY 1;
SELECT * FROM kinds('^part_');
ALTER TABLE part_u SET LOGGED;
ALTER TABLE part_l SET UNLOGGED;
SELECT * FROM kinds('^part_');
SELECT * FROM found('part_u');
SELECT * FROM found('part_l');

-- A prepared transaction's rows are nobody's until it ends.
BEGIN;
INSERT INTO u (a, b) VALUES (6000, 'prepared');
UPDATE u SET b = 'prepared' WHERE a = 7;
PREPARE TRANSACTION 'am_unlogged';
SELECT a, b FROM u WHERE a IN (7, 6000);
COMMIT PREPARED 'am_unlogged';
SELECT a, b FROM u WHERE a IN (7, 6000) ORDER BY a;
SELECT * FROM found('u');

SELECT pg_relation_filepath('u') AS u_file, pg_relation_filepath('u_pkey') AS u_pkey_file \gset
DROP TABLE u CASCADE;
-- The next checkpoint takes the main files away, which are empty.
SELECT (pg_stat_file(:'u_file' || '_init', true)).size AS u, (pg_stat_file(:'u_pkey_file' || '_init', true)).size AS u_pkey;
SET client_min_messages = error;
DROP SCHEMA am_unlogged CASCADE;
