-- ALTER TABLE on memory-optimized tables where core must see a btree, and where storage changes. What heap tables do is the oracle.
SET client_min_messages = warning;
CREATE SCHEMA am_alter;
SET search_path = am_alter;
CREATE FUNCTION kind(method name) RETURNS text LANGUAGE sql AS $$ SELECT CASE method WHEN 'mot_index' THEN 'm' WHEN 'btree' THEN 'b' WHEN 'mot' THEN 'M' WHEN 'heap' THEN 'H' END $$;
-- the indexes of a table and of what is below it: name, key, access method; how many there are below a parent; whether all work
CREATE FUNCTION indexes(of regclass) RETURNS TABLE (table_name text, index_name text, definition text, method text, attached bool, ok bool) LANGUAGE sql AS $$
  SELECT t.relname, i.relname, regexp_replace(pg_get_indexdef(i.oid), '.* USING \w+ ', ''), kind(m.amname), i.relispartition, indisvalid AND indisready AND indislive
  FROM pg_partition_tree(of) p RIGHT JOIN (SELECT of AS relid) o ON true JOIN pg_class t ON t.oid = COALESCE(p.relid, o.relid)
    JOIN pg_index x ON x.indrelid = t.oid JOIN pg_class i ON i.oid = indexrelid JOIN pg_am m ON m.oid = i.relam ORDER BY 1, 2 $$;

-- a plain table: types with and without a rewrite, that keep an index or make it anew
CREATE TABLE t (a int PRIMARY KEY, b varchar(10), c int, d text, f int, e int GENERATED ALWAYS AS (f * 2) STORED) USING mot;
CREATE INDEX t_b ON t (b);
CREATE INDEX t_c_b ON t (c, b);
CREATE UNIQUE INDEX t_d ON t (d);
CREATE INDEX t_e ON t (e);
COMMENT ON INDEX t_b IS 'stays';
INSERT INTO t SELECT g, 'b' || g % 7, g % 5, 'd' || g, g FROM generate_series(1, 100) g;
ALTER TABLE t ALTER b TYPE varchar(20);
ALTER TABLE t ALTER b TYPE text;
SELECT * FROM indexes('t');
SELECT obj_description('t_b'::regclass);
SET enable_seqscan = off;
SELECT count(*) FROM t WHERE b = 'b3';
INSERT INTO t VALUES (101, 'b3', 1, 'd101');
SELECT count(*) FROM t WHERE b = 'b3';
ALTER TABLE t ALTER a TYPE bigint, ALTER c TYPE numeric USING c + 0.5, ALTER d TYPE varchar(30);
ALTER TABLE t ALTER b TYPE text COLLATE "C";
ALTER TABLE t ALTER e TYPE bigint;
SELECT a FROM t WHERE e = 14;
SELECT * FROM indexes('t');
SELECT count(*) FROM t WHERE c = 1.5;
SELECT a FROM t WHERE d = 'd57';
SELECT a FROM t WHERE a = 58;
INSERT INTO t (a, d) VALUES (101, 'x');
INSERT INTO t (a, d) VALUES (102, 'd101');
-- an error takes all back, to the savepoint too
BEGIN;
SAVEPOINT s;
ALTER TABLE t ALTER d TYPE int USING 1 / (length(d) - length(d));
ROLLBACK TO s;
INSERT INTO t (a, d) VALUES (102, 'd101');
ROLLBACK TO s;
ALTER TABLE t ALTER d TYPE text;
ROLLBACK TO s;
INSERT INTO t (a, d) VALUES (102, 'd101');
ROLLBACK TO s;
SELECT a FROM t WHERE d = 'd57';
COMMIT;
SELECT index_name, method FROM indexes('t');
-- and in the transaction that makes the index
BEGIN;
CREATE INDEX t_new ON t (c);
ALTER TABLE t ALTER c TYPE float8;
SELECT count(*) FROM t WHERE c = 1.5;
ALTER TABLE t ALTER c TYPE numeric;
SELECT count(*) FROM t WHERE c = 1.5;
COMMIT;
SELECT index_name, method FROM indexes('t');
-- event triggers see the table at work
CREATE FUNCTION event() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM count(*) FROM am_alter.t WHERE a = 57; PERFORM count(*) FROM am_alter.t WHERE c = 1.5; END $$;
CREATE EVENT TRIGGER am_alter_start ON ddl_command_start EXECUTE FUNCTION event();
CREATE EVENT TRIGGER am_alter_end ON ddl_command_end EXECUTE FUNCTION event();
ALTER TABLE t ALTER c TYPE float8;
DROP EVENT TRIGGER am_alter_start;
DROP EVENT TRIGGER am_alter_end;

-- a column's index written out beside others; typed tables
CREATE TYPE composite AS (x int, y int);
CREATE TABLE typed OF composite USING mot;
CREATE INDEX typed_x ON typed (x);
INSERT INTO typed SELECT g, g FROM generate_series(1, 10) g;
ALTER TYPE composite ALTER ATTRIBUTE x TYPE bigint CASCADE;
SELECT * FROM indexes('typed');
SELECT y FROM typed WHERE x = 7;
-- inheritance
CREATE TABLE parent (x int, y int);
CREATE TABLE child (z int) INHERITS (parent) USING mot;
CREATE INDEX child_x ON child (x);
INSERT INTO child SELECT g, g, g FROM generate_series(1, 10) g;
ALTER TABLE parent ALTER x TYPE numeric;
SELECT * FROM indexes('child');
SELECT y FROM parent WHERE x = 7;
-- partitions: the same on a heap table
CREATE TABLE p (a int, b int, c text) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (b);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES IN (1) USING mot;
CREATE TABLE p22 PARTITION OF p2 FOR VALUES IN (2);
CREATE TABLE h (a int, b int, c text) PARTITION BY LIST (a);
CREATE TABLE h1 PARTITION OF h FOR VALUES IN (1);
CREATE TABLE h2 PARTITION OF h FOR VALUES IN (2) PARTITION BY LIST (b);
CREATE TABLE h21 PARTITION OF h2 FOR VALUES IN (1);
CREATE TABLE h22 PARTITION OF h2 FOR VALUES IN (2);
-- whether the one has the indexes that the other has
CREATE VIEW differences AS
  SELECT replace(table_name, 'h', 'p') AS of_table, replace(index_name, 'h', 'p'), definition, attached, ok FROM indexes('h')
  EXCEPT SELECT table_name, index_name, definition, attached, ok FROM indexes('p') UNION ALL
  (SELECT table_name, index_name, definition, attached, ok FROM indexes('p')
  EXCEPT SELECT replace(table_name, 'h', 'p'), replace(index_name, 'h', 'p'), definition, attached, ok FROM indexes('h'));
CREATE FUNCTION either(statement text) RETURNS SETOF differences LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  EXECUTE regexp_replace(statement, '\mp', 'h', 'g');
  RETURN QUERY SELECT * FROM differences;
END $$;
SELECT * FROM either('CREATE INDEX p1_b ON p1 (b)');
SELECT * FROM either('CREATE INDEX p21_b ON p21 (b)');
SELECT * FROM either('CREATE INDEX p_b ON p (b)');
SELECT * FROM either('CREATE INDEX p_b2 ON p (b)');
SELECT * FROM either('CREATE UNIQUE INDEX p_u ON p (a, b, c)');
SELECT * FROM either('ALTER TABLE p1 ADD UNIQUE (a, b)');
SELECT * FROM either('ALTER TABLE p22 ADD UNIQUE (a, b)');
SELECT * FROM either('ALTER TABLE p ADD UNIQUE (a, b)');
SELECT * FROM either('ALTER TABLE p21 ALTER a SET NOT NULL, ALTER b SET NOT NULL, ADD PRIMARY KEY (b, a)');
SELECT * FROM either('ALTER TABLE p ADD PRIMARY KEY (b, a)');
SELECT * FROM either('ALTER TABLE p DROP CONSTRAINT p_pkey, ADD PRIMARY KEY (a, b, c)');
SELECT * FROM indexes('p');
INSERT INTO p VALUES (1, 1, 'x'), (2, 1, 'x'), (2, 2, 'x');
INSERT INTO p VALUES (1, 1, 'y');
INSERT INTO p VALUES (2, 1, 'y');
SELECT * FROM either('ALTER TABLE p ALTER c TYPE varchar(30)');
SELECT * FROM indexes('p') WHERE table_name IN ('p', 'p1', 'p21');
INSERT INTO p VALUES (1, 1, 'y');
SELECT count(*) FROM p WHERE c = 'x';
-- with rewrites, and indexes that only a partition has
SELECT * FROM either('ALTER TABLE p ADD COLUMN d int');
SELECT * FROM either('CREATE INDEX p_d ON p (d, b)');
SELECT * FROM either('CREATE INDEX p1_d ON p1 (d)');
SELECT * FROM either('CREATE INDEX p2_d ON p2 (d)');
SELECT * FROM either('CREATE UNIQUE INDEX p21_d ON p21 (d)');
UPDATE p SET d = a;
SELECT * FROM either('ALTER TABLE p ALTER d TYPE bigint');
SELECT * FROM either('ALTER TABLE p ALTER d TYPE text');
SELECT * FROM either('ALTER TABLE p ALTER d TYPE varchar');
SELECT table_name, index_name, method FROM indexes('p') WHERE definition LIKE '%d%' ORDER BY 1, 2;
SELECT a, b FROM p WHERE d = '2' ORDER BY 1, 2;
INSERT INTO p VALUES (2, 1, 'z', '2');
SELECT * FROM either('ALTER TABLE p DROP COLUMN d');
-- ATTACH: what fits is taken, what is missing is made
CREATE TABLE p3 (a int NOT NULL, b int NOT NULL, c varchar(30) NOT NULL) USING mot;
CREATE TABLE h3 (LIKE p3);
SELECT * FROM either('ALTER TABLE p3 ADD PRIMARY KEY (a, b, c)') WHERE of_table <> 'p3';
SELECT * FROM either('CREATE INDEX p3_more ON p3 (b)') WHERE of_table <> 'p3';
INSERT INTO p3 VALUES (3, 3, 'x');
INSERT INTO h3 VALUES (3, 3, 'x');
SELECT * FROM either('ALTER TABLE p ATTACH PARTITION p3 FOR VALUES IN (3)');
SELECT * FROM indexes('p3');
INSERT INTO p VALUES (3, 3, 'x');
SELECT * FROM either('ALTER TABLE p DETACH PARTITION p3');
SELECT * FROM indexes('p3');
SELECT * FROM either('ALTER TABLE p ATTACH PARTITION p3 FOR VALUES IN (3)');
-- as pg_dump attaches indexes
CREATE TABLE q (a int, b int) PARTITION BY LIST (a);
CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1) USING mot;
CREATE INDEX q_b ON ONLY q USING btree (b);
ALTER TABLE ONLY q ADD CONSTRAINT q_key UNIQUE (a, b);
CREATE INDEX q1_b ON q1 USING mot_index (b);
ALTER TABLE ONLY q1 ADD CONSTRAINT q1_key UNIQUE (a, b);
ALTER INDEX q_b ATTACH PARTITION q1_b;
ALTER INDEX q_key ATTACH PARTITION q1_key;
SELECT * FROM indexes('q');
CREATE INDEX q1_wrong ON q1 (a);
CREATE INDEX q_b2 ON ONLY q (b);
ALTER INDEX q_b2 ATTACH PARTITION q1_wrong;
DROP TABLE q;
-- a foreign key that ATTACH validates while the indexes are shown as btrees
CREATE TABLE referenced (a int PRIMARY KEY) USING mot;
INSERT INTO referenced VALUES (1), (2);
CREATE TABLE referencing (a int REFERENCES referenced, b int) PARTITION BY LIST (b);
CREATE INDEX ON referencing (a);
CREATE TABLE referencing1 (a int, b int) USING mot;
CREATE INDEX ON referencing1 (a);
INSERT INTO referencing1 VALUES (1, 1), (2, 1);
ALTER TABLE referencing ATTACH PARTITION referencing1 FOR VALUES IN (1);
INSERT INTO referencing VALUES (3, 1);
DELETE FROM referenced WHERE a = 2;

-- USING INDEX
CREATE TABLE u (a int, b int, c int) USING mot;
INSERT INTO u SELECT g, g, g FROM generate_series(1, 10) g;
CREATE UNIQUE INDEX u_a ON u (a);
CREATE UNIQUE INDEX u_b ON u (b);
CREATE UNIQUE INDEX u_c ON u (c DESC);
CREATE INDEX u_plain ON u (c);
ALTER TABLE u ADD CONSTRAINT u_renamed PRIMARY KEY USING INDEX u_a, ADD UNIQUE USING INDEX u_b;
ALTER TABLE u ADD UNIQUE USING INDEX u_c;
ALTER TABLE u ADD UNIQUE USING INDEX u_plain;
ALTER TABLE u ADD UNIQUE USING INDEX nowhere;
SELECT * FROM indexes('u');
INSERT INTO u VALUES (1, 11, 11);
INSERT INTO u VALUES (11, 1, 11);
SELECT a FROM u WHERE b = 7;
BEGIN;
CREATE UNIQUE INDEX u_both ON u (a, b);
ALTER TABLE u ADD UNIQUE USING INDEX u_both, ADD FOREIGN KEY (c) REFERENCES u (b);
INSERT INTO u VALUES (11, 11, 12);
ROLLBACK;
INSERT INTO u VALUES (11, 11, 12);
ALTER TABLE u REPLICA IDENTITY USING INDEX u_b;
-- an index that the same statement changes first, rebuilt or kept, renamed, and taken back
CREATE TABLE u_typed (a int, b varchar(5), c int) USING mot;
INSERT INTO u_typed VALUES (1, 'x', 1), (2, 'y', 2);
CREATE UNIQUE INDEX u_typed_a ON u_typed (a);
CREATE UNIQUE INDEX u_typed_b ON u_typed (b);
BEGIN;
ALTER TABLE u_typed ADD PRIMARY KEY USING INDEX u_typed_a, ALTER a TYPE bigint;
ROLLBACK;
ALTER TABLE u_typed ADD CONSTRAINT u_typed_key PRIMARY KEY USING INDEX u_typed_a, ADD UNIQUE USING INDEX u_typed_b, ALTER a TYPE bigint, ALTER b TYPE varchar(10), ALTER c TYPE bigint;
SELECT * FROM indexes('u_typed');
INSERT INTO u_typed VALUES (1, 'z', 3);
INSERT INTO u_typed VALUES (3, 'y', 3);
SELECT c FROM u_typed WHERE a = 2;
CREATE UNIQUE INDEX u_typed_c ON u_typed (c);
ALTER TABLE u_typed ADD UNIQUE USING INDEX u_typed_c, ALTER c TYPE int USING 1;
SELECT * FROM indexes('u_typed');
DROP TABLE u_typed;

-- SET ACCESS METHOD both ways, by name and in a transaction
CREATE TABLE s (a int PRIMARY KEY, b text) USING heap;
CREATE INDEX s_b ON s (b);
INSERT INTO s SELECT g, repeat(g::text, 100) FROM generate_series(1, 100) g;
ALTER TABLE s SET ACCESS METHOD mot;
SELECT kind(amname) FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE c.oid = 's'::regclass;
SELECT index_name, method, ok FROM indexes('s');
INSERT INTO s VALUES (1, 'x');
SELECT a FROM s WHERE b = repeat('57', 100);
BEGIN;
ALTER TABLE s SET ACCESS METHOD heap;
INSERT INTO s VALUES (101, 'x');
SELECT a FROM s WHERE b = 'x';
ROLLBACK;
SELECT a FROM s WHERE b = repeat('58', 100);
ALTER TABLE s SET ACCESS METHOD heap;
SELECT kind(amname), reltoastrelid <> 0 AS has_toast FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE c.oid = 's'::regclass;
SELECT index_name, method, ok FROM indexes('s');
DROP INDEX s_b;
INSERT INTO s SELECT 102, string_agg(md5(g::text), '') FROM generate_series(1, 10000) g;
INSERT INTO s VALUES (1, 'x');
SELECT a, length(b) FROM s WHERE a > 57 AND a < 60 OR a > 101 ORDER BY a;
DELETE FROM s WHERE a = 102;
BEGIN;
CREATE TABLE fresh (a int PRIMARY KEY) USING heap;
INSERT INTO fresh VALUES (1);
SAVEPOINT s;
ALTER TABLE fresh SET ACCESS METHOD mot;
INSERT INTO fresh VALUES (2);
INSERT INTO fresh VALUES (1);
ROLLBACK TO s;
INSERT INTO fresh VALUES (2);
SELECT a FROM fresh WHERE a = 2;
SAVEPOINT s;
INSERT INTO fresh VALUES (2);
ROLLBACK TO s;
COMMIT;
SELECT a FROM fresh WHERE a = 2;
SELECT index_name, method, ok FROM indexes('fresh');
-- what cannot become one
CREATE INDEX s_lower ON s (lower(b));
ALTER TABLE s SET ACCESS METHOD mot;
ALTER TABLE s SET ACCESS METHOD heap;
DROP INDEX s_lower;
CREATE INDEX s_hash ON s USING hash (b);
ALTER TABLE s SET ACCESS METHOD mot;
DROP INDEX s_hash;
ALTER TABLE s SET ACCESS METHOD mot, ADD COLUMN c int;
ALTER TABLE s ADD COLUMN c int DEFAULT 7;
CREATE INDEX s_c ON s (c);
ALTER TABLE s SET ACCESS METHOD mot;
SELECT count(*) FROM s WHERE c = 7;
ALTER TABLE s SET (user_catalog_table = true);
CREATE TABLE catalog_table (a int) WITH (user_catalog_table = true);
ALTER TABLE catalog_table SET ACCESS METHOD mot;
CREATE TEMP TABLE temporary (a int);
ALTER TABLE temporary SET ACCESS METHOD mot;
CREATE MATERIALIZED VIEW v USING mot AS SELECT 1 AS x;
CREATE UNIQUE INDEX ON v (x);
REFRESH MATERIALIZED VIEW v;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
ALTER MATERIALIZED VIEW v SET ACCESS METHOD heap;
REFRESH MATERIALIZED VIEW CONCURRENTLY v;
SELECT * FROM v;
RESET enable_seqscan;
-- A column's type is changed under indexes that have the whole row: they stay, and serve.
CREATE TABLE whole (id int, v int, w varchar(5)) USING mot;
INSERT INTO whole SELECT g, g, g FROM generate_series(1, 5) g;
CREATE INDEX whole_key ON whole ((whole.* IS NULL), id);
CREATE INDEX whole_some ON whole (id) WHERE whole.* IS NOT NULL;
CREATE INDEX whole_both ON whole ((whole.* IS NULL), v);
ALTER TABLE whole ALTER v TYPE bigint;
ALTER TABLE whole ALTER w TYPE varchar(9);
ALTER TABLE whole ALTER id TYPE bigint USING id + 1, ALTER v TYPE int;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname LIKE 'whole%' ORDER BY 1;
SET enable_seqscan = off;
SELECT * FROM whole WHERE (whole.* IS NULL) = false AND id = 3;
SELECT count(*) FROM whole WHERE whole.* IS NOT NULL AND id > 3;
RESET enable_seqscan;
INSERT INTO whole VALUES (9, 9, 'nine');
SELECT rows, entries FROM mot.check('whole');
DROP TABLE whole;
SET client_min_messages = error;
DROP SCHEMA am_alter CASCADE;
