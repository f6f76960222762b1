-- Run by am_deferrable.sql for each access method, which :method names.
SELECT 'am_deferrable_' || :'method' AS schema \gset
CREATE SCHEMA :schema;
SET search_path = :schema;
SET default_table_access_method = :method;
CREATE TABLE t (id int PRIMARY KEY DEFERRABLE, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, v int);
INSERT INTO t SELECT g, g, g FROM generate_series(1, 5) g;
SELECT indexrelid::regclass, indisunique, indimmediate FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype IN ('p', 'u') ORDER BY 1;
-- a statement may break what it heals
UPDATE t SET id = id + 1;
UPDATE t SET id = 7 - id;
UPDATE t SET id = 3 WHERE v = 2;
INSERT INTO t VALUES (2, 100, 100);
INSERT INTO t VALUES (50, 50, 50), (50, 51, 51);
SELECT * FROM t ORDER BY v;
-- a transaction may, where the constraint is deferred
BEGIN;
UPDATE t SET u = 2 WHERE u = 1;
INSERT INTO t VALUES (10, 3, 10);
UPDATE t SET u = 1 WHERE v = 2;
DELETE FROM t WHERE v = 3;
COMMIT;
SELECT * FROM t ORDER BY v;
BEGIN;
INSERT INTO t VALUES (11, 4, 11);
COMMIT;
BEGIN;
UPDATE t SET u = 4 WHERE v = 5;
SET CONSTRAINTS t_u_key IMMEDIATE;
ROLLBACK;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO t VALUES (2, 200, 200);
UPDATE t SET id = 12 WHERE v = 200;
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO t VALUES (12, 201, 201);
COMMIT;
-- rows that are changed again, taken back, deleted
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO t VALUES (4, 300, 300);
UPDATE t SET v = 301 WHERE v = 300;
UPDATE t SET v = 302, id = 40 WHERE v = 301;
UPDATE t SET v = 303, id = 4 WHERE v = 302;
SAVEPOINT s;
UPDATE t SET id = 41 WHERE v = 303;
ROLLBACK TO s;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
SAVEPOINT s;
INSERT INTO t VALUES (4, 300, 300);
ROLLBACK TO s;
INSERT INTO t VALUES (4, 4, 300);
DELETE FROM t WHERE v = 300;
INSERT INTO t VALUES (4, 4, 301);
UPDATE t SET id = 30, u = 30 WHERE v = 301;
COMMIT;
SELECT * FROM t ORDER BY v;
-- NULLs, several columns, texts
CREATE TABLE n (a int, b text, UNIQUE (a, b) DEFERRABLE INITIALLY DEFERRED, UNIQUE NULLS NOT DISTINCT (b) DEFERRABLE);
INSERT INTO n VALUES (1, NULL);
INSERT INTO n VALUES (1, NULL);
INSERT INTO n VALUES (NULL, 'x');
ALTER TABLE n DROP CONSTRAINT n_b_key;
INSERT INTO n VALUES (1, NULL), (NULL, 'x'), (NULL, NULL), (NULL, NULL);
INSERT INTO n VALUES (2, 'y'), (2, 'yy');
INSERT INTO n VALUES (2, 'y');
ALTER TABLE n ADD UNIQUE NULLS NOT DISTINCT (b) DEFERRABLE;
ALTER TABLE n ADD UNIQUE NULLS NOT DISTINCT (a, b) DEFERRABLE;
DELETE FROM n WHERE a IS NULL OR b IS NULL;
ALTER TABLE n ADD UNIQUE NULLS NOT DISTINCT (b) DEFERRABLE;
INSERT INTO n VALUES (NULL, NULL);
INSERT INTO n VALUES (NULL, NULL);
SELECT * FROM n ORDER BY a, b;
-- many rows of one key on the way
CREATE TABLE many (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v int);
INSERT INTO many SELECT g, g FROM generate_series(1, 500) g;
BEGIN;
UPDATE many SET id = 7;
UPDATE many SET id = 501 - v;
COMMIT;
UPDATE many SET id = 7;
UPDATE many SET id = CASE WHEN v < 500 THEN v ELSE 499 END;
SELECT count(DISTINCT id), min(id + v), max(id + v) FROM many;
COPY many FROM stdin;
501	501
502	502
501	503
\.
-- a constraint on rows that are there
CREATE TABLE filled (a int, b int);
INSERT INTO filled VALUES (1, 1), (2, 1), (3, 2);
ALTER TABLE filled ADD PRIMARY KEY (b) DEFERRABLE;
ALTER TABLE filled ADD PRIMARY KEY (a) DEFERRABLE;
BEGIN;
UPDATE filled SET b = a;
ALTER TABLE filled ADD UNIQUE (b) DEFERRABLE INITIALLY DEFERRED;
COMMIT;
UPDATE filled SET a = a + 1, b = b + 1;
CREATE UNIQUE INDEX filled_i ON filled (a, b);
ALTER TABLE filled ADD CONSTRAINT taken UNIQUE USING INDEX filled_i DEFERRABLE INITIALLY DEFERRED;
BEGIN;
UPDATE filled SET a = 2 WHERE b = 3;
UPDATE filled SET b = 3 WHERE a = 2;
UPDATE filled SET a = 4 - a;
ROLLBACK;
ALTER TABLE filled DROP CONSTRAINT filled_pkey, DROP CONSTRAINT filled_b_key;
BEGIN;
UPDATE filled SET a = 2, b = 2;
ROLLBACK;
UPDATE filled SET a = 2, b = 2;
CREATE UNIQUE INDEX filled_j ON filled (b);
ALTER TABLE filled ALTER b TYPE bigint, ADD CONSTRAINT retyped PRIMARY KEY USING INDEX filled_j DEFERRABLE;
UPDATE filled SET b = b + 1;
SELECT * FROM filled ORDER BY a;
SELECT indexrelid::regclass::text COLLATE "C", indisunique, indimmediate FROM pg_index WHERE indrelid = 'filled'::regclass ORDER BY 1;
-- built anew
REINDEX TABLE filled;
REINDEX TABLE CONCURRENTLY filled;
UPDATE filled SET b = b + 1;
UPDATE filled SET b = 3;
CREATE UNIQUE INDEX CONCURRENTLY beside ON filled (b);
INSERT INTO filled VALUES (3, 3);
UPDATE filled SET b = b + 1;
DROP INDEX beside;
UPDATE filled SET b = b + 1;
SELECT format('ALTER TABLE filled SET ACCESS METHOD heap') \gexec
UPDATE filled SET b = b + 1;
SELECT format('ALTER TABLE filled SET ACCESS METHOD %I', :'method') \gexec
UPDATE filled SET b = b + 1;
CLUSTER filled USING retyped;
VACUUM FULL filled;
UPDATE filled SET b = b + 1;
INSERT INTO filled VALUES (9, 7);
TRUNCATE filled;
INSERT INTO filled VALUES (1, 1), (2, 2);
UPDATE filled SET b = 3 - b;
SELECT * FROM filled ORDER BY a;
-- a row that changes thousands of times, and meets another one half of the time
CREATE TABLE often (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v int);
INSERT INTO often VALUES (1, 1), (-1, 2);
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 1200 LOOP UPDATE often SET id = 1 - id WHERE v = 1; UPDATE often SET id = -2 + id % 2 WHERE v = 2; END LOOP; END $$;
UPDATE often SET id = 3 WHERE v = 1;
SELECT * FROM often ORDER BY v;
COMMIT;
BEGIN;
DO $$ BEGIN FOR i IN 1 .. 1200 LOOP UPDATE often SET id = i % 2 WHERE v = 1; UPDATE often SET id = (i + 1) % 2 WHERE v = 2; END LOOP; END $$;
UPDATE often SET id = 0;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
SELECT * FROM often ORDER BY v;
-- statements that were prepared before there was a constraint
CREATE TABLE late (id int, v int);
PREPARE put (int, int) AS INSERT INTO late VALUES ($1, $2);
PREPARE move (int, int) AS UPDATE late SET id = $2 WHERE v = $1;
EXECUTE put (1, 1);
EXECUTE put (2, 2);
EXECUTE move (1, 3);
EXECUTE move (1, 1);
ALTER TABLE late ADD UNIQUE (id) DEFERRABLE;
EXECUTE put (1, 3);
EXECUTE move (1, 2);
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
EXECUTE put (1, 3);
EXECUTE move (1, 2);
EXECUTE move (2, 3);
COMMIT;
ALTER TABLE late DROP CONSTRAINT late_id_key;
EXECUTE put (1, 4);
EXECUTE move (1, 1);
ALTER TABLE late ADD UNIQUE (id, v) DEFERRABLE;
ALTER TABLE late ADD EXCLUDE (v WITH =);
EXECUTE put (1, 4);
SELECT * FROM late ORDER BY v;
-- in a table of the same transaction, a temporary one, an unlogged one
BEGIN;
CREATE TABLE fresh (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v int);
INSERT INTO fresh SELECT g / 2, g FROM generate_series(1, 10) g;
UPDATE fresh SET id = v;
SAVEPOINT s;
INSERT INTO fresh VALUES (3, 11);
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK TO s;
COMMIT;
CREATE TEMP TABLE own (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, x int, EXCLUDE (x WITH =)) ON COMMIT DELETE ROWS;
INSERT INTO own VALUES (1, 1), (1, 2);
BEGIN;
INSERT INTO own VALUES (1, 1), (1, 2);
UPDATE own SET id = x;
INSERT INTO own VALUES (3, 2);
ROLLBACK;
BEGIN;
INSERT INTO own VALUES (1, 1), (1, 2);
UPDATE own SET id = x;
COMMIT;
SELECT count(*) FROM own;
DROP TABLE own;
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY DEFERRABLE, v int UNIQUE DEFERRABLE);
INSERT INTO unlogged SELECT g, -g FROM generate_series(1, 10) g;
UPDATE unlogged SET id = id + 1, v = v + 1;
ALTER TABLE unlogged SET LOGGED;
UPDATE unlogged SET id = id + 1, v = v + 1;
UPDATE unlogged SET id = 5;
SELECT min(id), max(v) FROM unlogged;
-- what a reference does to such a key
CREATE TABLE one (id int PRIMARY KEY);
CREATE TABLE many_of (one int UNIQUE DEFERRABLE INITIALLY DEFERRED REFERENCES one ON UPDATE CASCADE, v int);
INSERT INTO one SELECT generate_series(1, 5);
INSERT INTO many_of SELECT g, g FROM generate_series(1, 5) g;
BEGIN;
UPDATE one SET id = 6 WHERE id = 5;
UPDATE many_of SET one = 1 WHERE v = 5;
UPDATE one SET id = 7 WHERE id = 1;
SELECT * FROM many_of ORDER BY v;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
-- what core refuses
CREATE TABLE refers (t int REFERENCES t);
INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (id) DO NOTHING;
INSERT INTO t VALUES (1, 1, 1) ON CONFLICT DO NOTHING;
ALTER TABLE t REPLICA IDENTITY USING INDEX t_pkey;
ALTER TABLE t ALTER CONSTRAINT t_pkey NOT DEFERRABLE;
-- ON CONFLICT by another key
CREATE TABLE up (id int PRIMARY KEY, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, n int DEFAULT 0);
INSERT INTO up VALUES (1, 1), (2, 2) ON CONFLICT (id) DO UPDATE SET n = 1;
INSERT INTO up VALUES (1, 3), (3, 3) ON CONFLICT (id) DO UPDATE SET n = up.n + 1, u = excluded.u;
BEGIN;
INSERT INTO up VALUES (1, 2), (4, 3) ON CONFLICT (id) DO UPDATE SET u = excluded.u;
UPDATE up SET u = id;
COMMIT;
INSERT INTO up VALUES (9, 1) ON CONFLICT (id) DO NOTHING;
SELECT * FROM up ORDER BY id;
-- no proof of one row at most while it may be broken
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
UPDATE t SET id = 3;
SELECT count(*) FROM t WHERE id = 3;
SELECT count(*) FROM n RIGHT JOIN (SELECT id FROM t) AS x ON false LEFT JOIN t ON t.id = x.id;
SELECT count(*) FROM (SELECT x.v FROM t AS x LEFT JOIN t AS y ON y.id = x.id) AS z;
ROLLBACK;
-- changes by triggers and functions, partitions, and PREPARE
CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET id = -id WHERE id = NEW.id + 1000;
  RETURN NULL;
END $$;
CREATE TRIGGER twice AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION twice();
INSERT INTO t VALUES (1001, 1001, 1001), (1, 1002, 1002);
SELECT id, v FROM t WHERE v > 1000 ORDER BY v;
CREATE TABLE parent (a int, b int, PRIMARY KEY (a) DEFERRABLE INITIALLY DEFERRED) PARTITION BY RANGE (a);
SELECT format('CREATE TABLE p1 PARTITION OF parent FOR VALUES FROM (0) TO (10) USING %I', :'method') \gexec
SELECT format('CREATE TABLE p2 PARTITION OF parent FOR VALUES FROM (10) TO (20) USING %I', :'method') \gexec
INSERT INTO parent VALUES (1, 1), (2, 2), (9, 9), (10, 10);
UPDATE parent SET a = a + 1;
INSERT INTO parent VALUES (3, 4);
SELECT * FROM parent ORDER BY a;
BEGIN;
UPDATE t SET u = 2;
PREPARE TRANSACTION 'broken';
SELECT count(*) FROM pg_prepared_xacts WHERE gid = 'broken';
BEGIN;
UPDATE t SET u = -u;
UPDATE t SET u = -u;
COMMIT;
DEALLOCATE ALL;
RESET default_table_access_method;
