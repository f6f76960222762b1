-- CLUSTER, VACUUM FULL and changes of the tablespace: the rows stay, in the order that core asks for, with all their indexes. What heap tables do is the oracle.
SET client_min_messages = warning;
CREATE SCHEMA am_rewrite;
SET search_path = am_rewrite;
CREATE TABLE t (a int PRIMARY KEY, b text, c int, gone text) USING mot;
CREATE INDEX t_b ON t (b);
CREATE UNIQUE INDEX t_c ON t (c DESC);
CREATE TABLE h (a int PRIMARY KEY, b text, c int, gone text) USING heap;
CREATE INDEX h_b ON h (b);
CREATE UNIQUE INDEX h_c ON h (c DESC);
-- runs a statement on both tables
CREATE PROCEDURE twice(statement text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE statement;
  EXECUTE regexp_replace(statement, '\mt(\M|_)', 'h\1', 'g');
END $$;
-- what is not alike: rows, and what each index finds
CREATE FUNCTION differences() RETURNS TABLE (what text, of_t text, of_h text) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT 'rows', x.r, y.r FROM (SELECT string_agg(s::text, ' ' ORDER BY s.a) FROM t s) x(r), (SELECT string_agg(s::text, ' ' ORDER BY s.a) FROM h s) y(r) WHERE x.r IS DISTINCT FROM y.r;
  SET LOCAL enable_seqscan = off;
  RETURN QUERY SELECT 'a', x.r, y.r FROM (SELECT string_agg(s.a::text, ' ' ORDER BY s.a) FROM t s WHERE s.a >= 0) x(r), (SELECT string_agg(s.a::text, ' ' ORDER BY s.a) FROM h s WHERE s.a >= 0) y(r) WHERE x.r IS DISTINCT FROM y.r;
  RETURN QUERY SELECT 'b', x.r, y.r FROM (SELECT string_agg(s.a::text, ' ' ORDER BY s.a) FROM t s WHERE s.b >= '') x(r), (SELECT string_agg(s.a::text, ' ' ORDER BY s.a) FROM h s WHERE s.b >= '') y(r) WHERE x.r IS DISTINCT FROM y.r;
  RETURN QUERY SELECT 'c', x.r, y.r FROM (SELECT string_agg(s.a::text, ' ' ORDER BY s.c) FROM t s WHERE s.c >= 0) x(r), (SELECT string_agg(s.a::text, ' ' ORDER BY s.c) FROM h s WHERE s.c >= 0) y(r) WHERE x.r IS DISTINCT FROM y.r;
  PERFORM mot.check('t');
  SET LOCAL enable_seqscan = on;
END $$;
-- whether the rows lie in the same order
CREATE FUNCTION lie_alike() RETURNS bool LANGUAGE sql AS $$ SELECT (SELECT string_agg(s.a::text, ' ') FROM t s) = (SELECT string_agg(s.a::text, ' ') FROM h s) $$;
CREATE FUNCTION clustered() RETURNS SETOF text LANGUAGE sql AS $$ SELECT indexrelid::regclass::text FROM pg_index WHERE indisclustered AND indrelid IN ('t'::regclass, 'h'::regclass) ORDER BY 1 $$;

CALL twice($$INSERT INTO t SELECT g, 'b' || g % 3, (g * 7) % 20, 'x' FROM generate_series(0, 19) g$$);
CALL twice($$UPDATE t SET b = NULL WHERE a = 4$$);
CALL twice($$DELETE FROM t WHERE a IN (3, 11)$$);
SELECT a FROM t LIMIT 3;
CLUSTER t USING t_c;
CLUSTER h USING h_c;
SELECT a, c FROM t LIMIT 3;
SELECT * FROM differences();
SELECT lie_alike();
SELECT * FROM clustered();
SELECT reltuples FROM pg_class WHERE oid IN ('t'::regclass, 'h'::regclass);
-- later rows lie behind, until it is done again
CALL twice($$INSERT INTO t VALUES (20, 'late', 100, 'x')$$);
CALL twice($$UPDATE t SET c = c + 1000 WHERE a = 5$$);
CLUSTER t;
CLUSTER h;
SELECT a, c FROM t LIMIT 3;
SELECT * FROM differences();
SELECT lie_alike();
-- by an index with NULLs
CLUSTER t USING t_b;
CLUSTER h USING h_b;
SELECT a, b FROM t OFFSET 17;
SELECT * FROM differences();
-- by name alone
ALTER TABLE t CLUSTER ON t_pkey;
ALTER TABLE h CLUSTER ON h_pkey;
SELECT * FROM clustered();
CLUSTER;
SELECT a FROM t LIMIT 3;
SELECT * FROM differences();
ALTER TABLE t SET WITHOUT CLUSTER;
ALTER TABLE h SET WITHOUT CLUSTER;
SELECT * FROM clustered();
CLUSTER t;
CLUSTER t USING nowhere;
ALTER TABLE t CLUSTER ON nowhere;
ALTER TABLE t CLUSTER ON h_b;
-- the order stays, dead rows go
CALL twice($$DELETE FROM t WHERE a IN (0, 7)$$);
VACUUM FULL t, h;
SELECT * FROM differences();
SELECT reltuples FROM pg_class WHERE oid IN ('t'::regclass, 'h'::regclass);
VACUUM (FULL, ANALYZE, FREEZE) t;
VACUUM (FULL, ANALYZE, FREEZE) h;
SELECT * FROM differences();
SELECT count(*) FROM pg_stats WHERE schemaname = 'am_rewrite' AND tablename = 't';
CREATE TABLE empty (a int PRIMARY KEY) USING mot;
VACUUM FULL empty;
CLUSTER empty USING empty_pkey;
INSERT INTO empty VALUES (1);
INSERT INTO empty VALUES (1);

-- a column that older rows lack, and one that is gone: core forgets what older rows have of the first
CALL twice($$ALTER TABLE t ADD COLUMN d int DEFAULT 7, ADD COLUMN e text DEFAULT 'much', DROP COLUMN gone$$);
CALL twice($$INSERT INTO t (a, b, c, d) VALUES (30, 'b', 30, 8)$$);
CREATE INDEX t_d ON t (d);
VACUUM FULL t, h;
SELECT attname, atthasmissing FROM pg_attribute WHERE attrelid = 't'::regclass AND attname IN ('d', 'e');
SELECT * FROM differences();
CREATE INDEX h_d ON h (d);
CLUSTER t USING t_d;
CLUSTER h USING h_d;
SELECT * FROM differences();
SELECT lie_alike();
CALL twice($$ALTER TABLE t ADD COLUMN f numeric DEFAULT 1.5$$);
CLUSTER t USING t_c;
CLUSTER h USING h_c;
SELECT DISTINCT f FROM t;
SELECT * FROM differences();
SELECT lie_alike();

-- in a block, among own changes
BEGIN;
CALL twice($$UPDATE t SET b = 'own' WHERE a < 5$$);
CALL twice($$UPDATE t SET b = 'twice', c = c + 500 WHERE a = 2$$);
CALL twice($$DELETE FROM t WHERE a BETWEEN 12 AND 14$$);
CALL twice($$INSERT INTO t (a, b, c) VALUES (40, 'own', 40), (41, 'own', 41)$$);
CALL twice($$DELETE FROM t WHERE a = 41$$);
SELECT count(*) FROM (SELECT 1 FROM t WHERE a = 6 FOR UPDATE) l;
CALL twice('CLUSTER t USING t_c');
SELECT * FROM differences();
CALL twice($$UPDATE t SET b = 'after' WHERE a IN (2, 6, 40)$$);
CALL twice($$DELETE FROM t WHERE a IN (8, 1)$$);
CALL twice($$INSERT INTO t (a, b, c) VALUES (42, 'after', 42)$$);
SELECT * FROM differences();
INSERT INTO t (a) VALUES (6);
ROLLBACK;
SELECT * FROM differences();
BEGIN;
CALL twice($$UPDATE t SET b = 'own' WHERE a < 5$$);
CALL twice($$DELETE FROM t WHERE a BETWEEN 12 AND 14$$);
CALL twice($$INSERT INTO t (a, b, c) VALUES (40, 'own', 40)$$);
SAVEPOINT s;
CALL twice($$UPDATE t SET c = c + 500 WHERE a = 2$$);
CALL twice('CLUSTER t USING t_c');
CALL twice($$UPDATE t SET b = 'after' WHERE a IN (2, 40)$$);
SELECT * FROM differences();
ROLLBACK TO s;
SELECT * FROM differences();
CALL twice($$UPDATE t SET c = c + 600 WHERE a = 2$$);
SAVEPOINT s2;
CALL twice('CLUSTER t USING t_b');
RELEASE s2;
CALL twice($$UPDATE t SET b = 'after' WHERE a IN (2, 40)$$);
CALL twice('CLUSTER t USING t_c');
SAVEPOINT s3;
CALL twice($$DELETE FROM t WHERE a < 6$$);
ROLLBACK TO s3;
SELECT * FROM differences();
COMMIT;
SELECT * FROM differences();
INSERT INTO t (a) VALUES (6);
INSERT INTO t (a, c) VALUES (50, 30);
-- a rolled-back row lock, and a copy dropped by what follows in the block
BEGIN;
CALL twice('CLUSTER t USING t_pkey');
CALL twice('TRUNCATE t');
CALL twice($$INSERT INTO t (a, b, c) VALUES (1, 'new', 1)$$);
SELECT * FROM differences();
ROLLBACK;
SELECT * FROM differences();
BEGIN;
CALL twice('CLUSTER t USING t_pkey');
CALL twice('ALTER TABLE t ALTER d TYPE bigint');
COMMIT;
SELECT * FROM differences();
-- refused as core refuses it
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t;
FETCH 1 FROM c;
CLUSTER t USING t_c;
ROLLBACK;
BEGIN;
CLUSTER t USING t_c;
PREPARE TRANSACTION 'am_rewrite';
ROLLBACK PREPARED 'am_rewrite';
SELECT * FROM differences();
BEGIN;
VACUUM FULL t;
ROLLBACK;

-- all tables, materialized views, partitions; parents and children of foreign keys
CREATE MATERIALIZED VIEW v USING mot AS SELECT a, c FROM t;
CREATE UNIQUE INDEX v_c ON v (c DESC);
CREATE TABLE p (a int, b int, PRIMARY KEY (a, b)) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
INSERT INTO p SELECT 1 + g % 2, 20 - g FROM generate_series(1, 20) g;
CREATE TABLE child (a int REFERENCES t, b int) USING mot;
INSERT INTO child SELECT a, a FROM t;
CLUSTER p USING p_pkey;
SELECT string_agg(b::text, ' ') FROM p1;
CLUSTER v USING v_c;
SELECT string_agg(c::text, ' ') = string_agg(c::text, ' ' ORDER BY c DESC) FROM v;
VACUUM FULL v, p, child;
VACUUM FULL;
CLUSTER;
SELECT count(*) FROM v WHERE c = 30;
DELETE FROM t WHERE a = 6;
INSERT INTO child VALUES (1000);
SELECT count(*) FROM p1 WHERE a = 1 AND b = 5;
SELECT rows FROM mot.check('child');
SELECT rows FROM mot.check('v');
SELECT rows FROM mot.check('p1');
DROP TABLE child;

-- tablespaces
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE am_rewrite_space LOCATION '';
CREATE FUNCTION spaces() RETURNS TABLE (relation text, space name) LANGUAGE sql AS $$
  SELECT c.oid::regclass::text, spcname FROM pg_class c LEFT JOIN pg_tablespace s ON s.oid = reltablespace
  WHERE relnamespace = 'am_rewrite'::regnamespace AND relkind IN ('r', 'm', 'i') AND spcname IS NOT NULL ORDER BY 1 $$;
ALTER TABLE t SET TABLESPACE am_rewrite_space;
ALTER TABLE h SET TABLESPACE am_rewrite_space;
SELECT * FROM spaces();
SELECT * FROM differences();
CALL twice($$INSERT INTO t (a, b, c) VALUES (60, 'there', 60)$$);
INSERT INTO t (a) VALUES (60);
INSERT INTO t (a, c) VALUES (61, 60);
CALL twice($$DELETE FROM t WHERE a = 9$$);
SELECT * FROM differences();
ALTER TABLE t SET TABLESPACE am_rewrite_space;
BEGIN;
CALL twice($$UPDATE t SET b = 'own' WHERE a < 5$$);
SAVEPOINT s;
CALL twice('ALTER TABLE t SET TABLESPACE pg_default');
CALL twice($$UPDATE t SET c = c + 5000 WHERE a < 3$$);
SELECT * FROM differences();
ROLLBACK TO s;
SELECT * FROM differences();
CALL twice('ALTER TABLE t SET TABLESPACE pg_default');
CALL twice($$DELETE FROM t WHERE a = 2$$);
COMMIT;
SELECT * FROM differences();
SELECT * FROM spaces();
-- with columns that older rows lack: core keeps what it has of them
CALL twice($$ALTER TABLE t ADD COLUMN g int DEFAULT 9$$);
ALTER TABLE t SET TABLESPACE am_rewrite_space;
ALTER TABLE h SET TABLESPACE am_rewrite_space;
SELECT DISTINCT g FROM t;
SELECT * FROM differences();
-- beside another change, with a rewrite, and of many
CALL twice('ALTER TABLE t SET TABLESPACE pg_default, ALTER d TYPE int');
CALL twice('ALTER TABLE t ALTER d TYPE text, SET TABLESPACE am_rewrite_space');
SELECT * FROM differences();
ALTER INDEX t_c SET TABLESPACE am_rewrite_space;
ALTER MATERIALIZED VIEW v SET TABLESPACE am_rewrite_space;
ALTER TABLE p1 SET TABLESPACE am_rewrite_space;
SELECT * FROM spaces();
CLUSTER t USING t_c;
CLUSTER h USING h_c;
SELECT * FROM differences();
SELECT lie_alike();
SELECT * FROM spaces() WHERE relation LIKE 't%';
DROP TABLESPACE am_rewrite_space;
ALTER TABLE ALL IN TABLESPACE am_rewrite_space SET TABLESPACE pg_default;
ALTER INDEX ALL IN TABLESPACE am_rewrite_space SET TABLESPACE pg_default;
ALTER MATERIALIZED VIEW ALL IN TABLESPACE am_rewrite_space SET TABLESPACE pg_default;
SELECT * FROM spaces();
SELECT * FROM differences();
SELECT count(*) FROM v WHERE c = 30;
SELECT rows FROM mot.check('v');
-- nothing is left there, also of what was dropped, rolled back or emptied
CREATE TABLE here (a int PRIMARY KEY) USING mot TABLESPACE am_rewrite_space;
INSERT INTO here VALUES (1);
TRUNCATE here;
DROP TABLE here;
BEGIN;
CREATE TABLE here (a int PRIMARY KEY) USING mot TABLESPACE am_rewrite_space;
ROLLBACK;
DROP TABLESPACE am_rewrite_space;
-- an index that a failed build left, with two rows of one key: rewrites take it along, invalid as it is
CREATE TABLE twins (id int PRIMARY KEY, n int) USING mot;
INSERT INTO twins VALUES (1, 5), (2, 5);
CREATE UNIQUE INDEX CONCURRENTLY twins_n ON twins (n);
VACUUM FULL twins;
INSERT INTO twins VALUES (4, 5);
CLUSTER twins USING twins_pkey;
INSERT INTO twins VALUES (5, 5);
DELETE FROM twins WHERE id > 3;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'twins_n'::regclass;
SELECT * FROM twins ORDER BY id;
REINDEX TABLE twins;
DELETE FROM twins WHERE id = 2;
VACUUM FULL twins;
REINDEX TABLE twins;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'twins_n'::regclass;
INSERT INTO twins VALUES (3, 5);
SELECT count(*) FROM mot.check('twins');
DROP TABLE twins;

-- an invalid unique index goes to another tablespace as it is, whatever keys repeat in it; writers enter it and are refused by it, as before
CREATE TABLESPACE am_rewrite_space LOCATION '';
CREATE TABLE odd (id int PRIMARY KEY, n int) USING mot;
INSERT INTO odd VALUES (1, 5), (2, 6);
CREATE UNIQUE INDEX odd_n ON odd (n);
CREATE VIEW odd_state AS SELECT indisready, indisvalid, indislive FROM pg_index WHERE indexrelid = 'odd_n'::regclass;
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'odd_n'::regclass;
ALTER INDEX odd_n SET TABLESPACE am_rewrite_space;
SELECT * FROM odd_state;
INSERT INTO odd VALUES (3, 5);
UPDATE pg_index SET indislive = false WHERE indexrelid = 'odd_n'::regclass;
INSERT INTO odd VALUES (3, 5);
UPDATE pg_index SET indislive = true WHERE indexrelid = 'odd_n'::regclass;
ALTER INDEX odd_n SET TABLESPACE pg_default;
SELECT * FROM odd_state;
INSERT INTO odd VALUES (4, 6);
ALTER INDEX odd_n SET TABLESPACE am_rewrite_space;
ALTER INDEX ALL IN TABLESPACE am_rewrite_space SET TABLESPACE pg_default;
SELECT * FROM odd_state;
SELECT rows FROM mot.check('odd');
REINDEX INDEX odd_n;
DELETE FROM odd WHERE id = 1;
REINDEX INDEX odd_n;
SELECT * FROM odd_state;
INSERT INTO odd VALUES (4, 6);
DROP VIEW odd_state;
DROP TABLE odd;
DROP TABLESPACE am_rewrite_space;
DROP SCHEMA am_rewrite CASCADE;
