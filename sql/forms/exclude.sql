-- Run by am_exclude.sql for each access method, which :method names.
SELECT 'am_exclude_' || :'method' AS schema \gset
CREATE SCHEMA :schema;
SET search_path = :schema;
SET default_table_access_method = :method;
CREATE TABLE t (a int, b int, v int, CONSTRAINT ex EXCLUDE USING btree (a WITH =, b WITH =));
CREATE TABLE plain (a int, v int, EXCLUDE (a WITH =));
SELECT replace(pg_get_constraintdef(oid), 'mot_index', 'btree') FROM pg_constraint WHERE contype = 'x' AND connamespace = :'schema'::regnamespace ORDER BY conname;
INSERT INTO t VALUES (1, 1, 1), (1, 2, 2), (NULL, 1, 3), (NULL, 1, 4);
INSERT INTO t VALUES (1, 1, 5);
INSERT INTO t VALUES (2, 1, 6), (2, 1, 7);
UPDATE t SET b = 2 WHERE v = 1;
UPDATE t SET b = 1 WHERE v = 1;
UPDATE t SET v = 10 WHERE v = 1;
UPDATE t SET b = 3 - b WHERE a = 1;
UPDATE t SET a = 5 WHERE v = 3;
UPDATE t SET a = 5 WHERE v = 4;
DELETE FROM t WHERE v = 3;
UPDATE t SET a = 5 WHERE v = 4;
SELECT * FROM t ORDER BY v;
-- own changes, savepoints
BEGIN;
INSERT INTO plain VALUES (1, 1);
UPDATE plain SET a = 2;
INSERT INTO plain VALUES (1, 2);
SAVEPOINT s;
DELETE FROM plain WHERE a = 2;
INSERT INTO plain VALUES (2, 3);
ROLLBACK TO s;
SAVEPOINT s;
INSERT INTO plain VALUES (2, 4);
ROLLBACK TO s;
UPDATE plain SET v = v + 10;
COMMIT;
SELECT * FROM plain ORDER BY a;
COPY plain FROM stdin;
3	3
2	4
\.
-- ON CONFLICT
INSERT INTO plain VALUES (2, 100), (7, 7), (7, 8) ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO plain VALUES (2, 100), (8, 8) ON CONFLICT ON CONSTRAINT plain_a_excl DO NOTHING RETURNING *;
INSERT INTO plain VALUES (2, 100) ON CONFLICT ON CONSTRAINT plain_a_excl DO UPDATE SET v = 0;
INSERT INTO plain VALUES (2, 100) ON CONFLICT (a) DO NOTHING;
CREATE TABLE up (id int PRIMARY KEY, x int, EXCLUDE (x WITH =));
INSERT INTO up VALUES (1, 1) ON CONFLICT DO NOTHING;
INSERT INTO up VALUES (2, 1) ON CONFLICT DO NOTHING;
INSERT INTO up VALUES (1, 2) ON CONFLICT DO NOTHING;
INSERT INTO up VALUES (2, 1) ON CONFLICT (id) DO NOTHING;
INSERT INTO up VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET x = excluded.x;
INSERT INTO up VALUES (3, 3), (1, 3) ON CONFLICT (id) DO UPDATE SET x = excluded.x;
PREPARE put (int, int) AS INSERT INTO up VALUES ($1, $2);
EXECUTE put (5, 5);
EXECUTE put (6, 5);
PREPARE change (int, int) AS UPDATE up SET x = $2 WHERE id = $1;
EXECUTE change (5, 2);
EXECUTE change (5, 6);
DO $$ BEGIN FOR i IN 1 .. 10 LOOP INSERT INTO up VALUES (100 + i, 100 + i % 5) ON CONFLICT DO NOTHING; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1 .. 10 LOOP INSERT INTO up VALUES (200 + i, 200 + i % 5); END LOOP; END $$;
SELECT * FROM up ORDER BY id;
-- deferrable ones
CREATE TABLE d (id int, v int, EXCLUDE (id WITH =) DEFERRABLE);
INSERT INTO d SELECT g, g FROM generate_series(1, 5) g;
UPDATE d SET id = id + 1;
UPDATE d SET id = 3;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
UPDATE d SET id = 3;
UPDATE d SET id = 6 - v;
UPDATE d SET v = v;
UPDATE d SET v = v, id = id;
COMMIT;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO d VALUES (1, 100);
UPDATE d SET v = 101 WHERE v = 100;
UPDATE d SET v = 102 WHERE v = 101;
COMMIT;
SELECT * FROM d ORDER BY v;
-- on rows that are there
CREATE TABLE filled (a int, b text);
INSERT INTO filled VALUES (1, 'x'), (2, 'x'), (3, 'y');
ALTER TABLE filled ADD EXCLUDE (b WITH =);
ALTER TABLE filled ADD EXCLUDE (a WITH =) INCLUDE (b);
BEGIN;
INSERT INTO filled VALUES (4, 'z');
DELETE FROM filled WHERE a = 2;
ALTER TABLE filled ADD CONSTRAINT b_ex EXCLUDE (b WITH =) DEFERRABLE INITIALLY DEFERRED;
COMMIT;
INSERT INTO filled VALUES (1, 'n');
INSERT INTO filled VALUES (5, 'z');
REINDEX TABLE filled;
REINDEX INDEX CONCURRENTLY b_ex;
SELECT format('ALTER TABLE filled SET ACCESS METHOD heap') \gexec
INSERT INTO filled VALUES (1, 'n');
SELECT format('ALTER TABLE filled SET ACCESS METHOD %I', :'method') \gexec
INSERT INTO filled VALUES (1, 'n');
CLUSTER filled USING filled_a_b_excl;
INSERT INTO filled VALUES (1, 'n');
ALTER TABLE filled ALTER a TYPE bigint;
INSERT INTO filled VALUES (1, 'n');
CREATE TABLE copied (LIKE filled INCLUDING ALL);
SELECT replace(pg_get_constraintdef(oid), 'mot_index', 'btree') FROM pg_constraint WHERE conrelid = 'copied'::regclass AND contype = 'x' ORDER BY conname;
SELECT * FROM filled ORDER BY a;
ALTER TABLE filled ADD EXCLUDE (a WITH <);
DEALLOCATE ALL;
RESET default_table_access_method;
