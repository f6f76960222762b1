-- Temporary tables of the access method. The same statements on heap tables give the same but where it is said.
\set VERBOSITY terse
SET default_table_access_method = mot;
CREATE FUNCTION tt_methods() RETURNS TABLE (name name, method name) LANGUAGE sql AS $$
  SELECT relname, amname FROM pg_class JOIN pg_am ON pg_am.oid = relam
  WHERE relpersistence = 't' AND relkind IN ('r', 'm', 'i') AND pg_is_other_temp_schema(relnamespace) IS FALSE AND relname LIKE 'tt%' ORDER BY relname COLLATE "C" $$;
-- 1. every way to make one
CREATE TEMP TABLE tt_a (id int PRIMARY KEY, v text);
CREATE TEMPORARY TABLE tt_as AS SELECT g AS a, g % 3 AS b FROM generate_series(1, 100) g;
SELECT 1 AS a INTO TEMP tt_into;
CREATE TABLE pg_temp.tt_named (a int);
CREATE TEMP TABLE tt_like (LIKE tt_a INCLUDING ALL);
CREATE TEMP TABLE tt_identity (id int GENERATED ALWAYS AS IDENTITY, s serial, v int);
CREATE TEMP TABLE tt_of (a int, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0), UNIQUE (a, b));
SELECT * FROM tt_methods();
INSERT INTO tt_a VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO tt_a VALUES (2, 'again');
INSERT INTO tt_a VALUES (2, 'again'), (4, 'four') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v || '!';
UPDATE tt_a SET v = v || '?' WHERE id = 1 RETURNING *;
DELETE FROM tt_a WHERE id = 3 RETURNING *;
SELECT * FROM tt_a ORDER BY id;
INSERT INTO tt_identity (v) VALUES (10), (20) RETURNING *;
INSERT INTO tt_of VALUES (1), (2) RETURNING *;
INSERT INTO tt_of VALUES (0);
INSERT INTO tt_of VALUES (2);
SELECT b, count(*) FROM tt_as GROUP BY b ORDER BY b;
SELECT a.id, s.b FROM tt_a a JOIN tt_as s ON s.a = a.id ORDER BY a.id;
COPY tt_like FROM stdin;
1	x
2	y
\.
COPY tt_like TO stdout;
MERGE INTO tt_like l USING tt_a a ON l.id = a.id WHEN MATCHED THEN UPDATE SET v = a.v WHEN NOT MATCHED THEN INSERT VALUES (a.id, 'new');
SELECT * FROM tt_like ORDER BY id;
-- 2. it hides a table of its name
CREATE TABLE tt_hidden (a int);
INSERT INTO tt_hidden VALUES (1);
CREATE TEMP TABLE tt_hidden (a text);
INSERT INTO tt_hidden VALUES ('temporary');
SELECT * FROM tt_hidden;
DROP TABLE tt_hidden;
SELECT * FROM tt_hidden;
DROP TABLE tt_hidden;
-- 3. ON COMMIT
CREATE TEMP TABLE tt_keep (a int PRIMARY KEY) ON COMMIT PRESERVE ROWS;
CREATE TEMP TABLE tt_rows (a int PRIMARY KEY, b int) ON COMMIT DELETE ROWS;
CREATE INDEX tt_rows_b ON tt_rows (b);
INSERT INTO tt_keep VALUES (1);
INSERT INTO tt_rows VALUES (1, 1);
SELECT (SELECT count(*) FROM tt_keep) AS keep, (SELECT count(*) FROM tt_rows) AS rows;
BEGIN;
INSERT INTO tt_rows SELECT g, g FROM generate_series(1, 1000) g;
SAVEPOINT one;
DELETE FROM tt_rows WHERE a > 10;
ROLLBACK TO one;
SELECT count(*) FROM tt_rows;
INSERT INTO tt_rows VALUES (5, 0);
ROLLBACK TO one;
SELECT count(*) FROM tt_rows WHERE b BETWEEN 1 AND 10;
COMMIT;
SELECT count(*) FROM tt_rows;
BEGIN;
INSERT INTO tt_rows VALUES (1, 1), (2, 2);
ROLLBACK;
SELECT count(*) FROM tt_rows;
-- emptied at each commit, and the keys with it
BEGIN; INSERT INTO tt_rows VALUES (1, 1); COMMIT;
BEGIN; INSERT INTO tt_rows VALUES (1, 1); SELECT * FROM tt_rows WHERE a = 1; COMMIT;
BEGIN; TRUNCATE tt_rows; INSERT INTO tt_rows VALUES (1, 1); TRUNCATE tt_rows; INSERT INTO tt_rows VALUES (1, 2); SELECT * FROM tt_rows; COMMIT;
BEGIN; ALTER TABLE tt_rows ADD COLUMN c int DEFAULT 7; INSERT INTO tt_rows VALUES (1, 1); SELECT * FROM tt_rows; COMMIT;
BEGIN; INSERT INTO tt_rows VALUES (1, 1); ALTER TABLE tt_rows ALTER COLUMN b TYPE bigint; SELECT * FROM tt_rows; COMMIT;
SELECT count(*) FROM tt_rows;
BEGIN; INSERT INTO tt_rows VALUES (1, 1); REINDEX TABLE tt_rows; SELECT * FROM tt_rows WHERE b = 1; COMMIT;
-- in a transaction that fails, also at its very end
BEGIN; CREATE TEMP TABLE tt_drop (a int PRIMARY KEY) ON COMMIT DROP; INSERT INTO tt_drop VALUES (1); SELECT * FROM tt_drop; COMMIT;
SELECT * FROM tt_drop;
BEGIN; CREATE TEMP TABLE tt_drop (a int PRIMARY KEY) ON COMMIT DROP; INSERT INTO tt_drop VALUES (1); INSERT INTO tt_drop VALUES (1); COMMIT;
SELECT * FROM tt_drop;
BEGIN; SAVEPOINT one; CREATE TEMP TABLE tt_drop (a int) ON COMMIT DROP; ROLLBACK TO one; CREATE TEMP TABLE tt_drop (a text) ON COMMIT DROP; INSERT INTO tt_drop VALUES ('x'); SELECT * FROM tt_drop; COMMIT;
SELECT * FROM tt_drop;
BEGIN; SAVEPOINT one; CREATE TEMP TABLE tt_drop (a int) ON COMMIT DROP; RELEASE one; INSERT INTO tt_drop VALUES (1); SAVEPOINT two; INSERT INTO tt_drop VALUES (2); ROLLBACK TO two; SELECT * FROM tt_drop; COMMIT;
SELECT * FROM tt_drop;
BEGIN; CREATE TEMP TABLE tt_drop ON COMMIT DROP AS SELECT 1 AS a; SELECT * FROM tt_drop; COMMIT;
SELECT * FROM tt_drop;
BEGIN; CREATE TEMP TABLE tt_rows_as ON COMMIT DELETE ROWS AS SELECT 1 AS a; SELECT * FROM tt_rows_as; COMMIT;
SELECT * FROM tt_rows_as;
CREATE TEMP TABLE tt_now ON COMMIT DROP AS SELECT 1 AS a;
SELECT * FROM tt_now;
CREATE TABLE tt_wrong (a int) ON COMMIT DROP;
-- a deferred key fails behind nothing, and leaves the rows of before
CREATE TEMP TABLE tt_parent (id int PRIMARY KEY);
CREATE TEMP TABLE tt_child (id int PRIMARY KEY, p int REFERENCES tt_parent DEFERRABLE INITIALLY DEFERRED);
INSERT INTO tt_parent VALUES (1);
BEGIN; INSERT INTO tt_child VALUES (1, 2); INSERT INTO tt_keep VALUES (2); INSERT INTO tt_rows VALUES (2, 2); COMMIT;
SELECT (SELECT count(*) FROM tt_child) AS child, (SELECT count(*) FROM tt_keep) AS keep, (SELECT count(*) FROM tt_rows) AS rows;
INSERT INTO tt_child VALUES (1, 1);
DELETE FROM tt_parent;
CREATE TEMP TABLE tt_cascade (id int PRIMARY KEY, p int REFERENCES tt_parent ON DELETE CASCADE ON UPDATE CASCADE);
DELETE FROM tt_child;
INSERT INTO tt_cascade VALUES (1, 1);
UPDATE tt_parent SET id = 5;
SELECT * FROM tt_cascade;
DELETE FROM tt_parent;
SELECT * FROM tt_cascade;
-- keys of both sorts, and tables that are emptied
CREATE TEMP TABLE tt_p2 (id int PRIMARY KEY) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE tt_c2 (p int REFERENCES tt_p2) ON COMMIT DELETE ROWS;
BEGIN; INSERT INTO tt_p2 VALUES (1); INSERT INTO tt_c2 VALUES (1); SELECT count(*) FROM tt_c2; COMMIT;
SELECT count(*) FROM tt_c2;
CREATE TEMP TABLE tt_c3 (p int REFERENCES tt_p2);
BEGIN; INSERT INTO tt_p2 VALUES (1); COMMIT;
DROP TABLE tt_c3;
CREATE TABLE tt_permanent (id int PRIMARY KEY);
CREATE TEMP TABLE tt_to_permanent (p int REFERENCES tt_permanent);
ALTER TABLE tt_permanent ADD p int REFERENCES tt_keep;
-- read-only transactions use them, and take no transaction id for an empty table
BEGIN READ ONLY; INSERT INTO tt_rows VALUES (1, 1); SELECT count(*) FROM tt_rows; INSERT INTO tt_permanent VALUES (1); ROLLBACK;
BEGIN READ ONLY; SELECT count(*) FROM tt_rows; INSERT INTO tt_keep VALUES (3); COMMIT;
SELECT * FROM tt_keep ORDER BY a;
-- 4. partitions and inheritance
CREATE TEMP TABLE tt_range (a int, b text, PRIMARY KEY (a)) PARTITION BY RANGE (a);
CREATE TEMP TABLE tt_range1 PARTITION OF tt_range FOR VALUES FROM (0) TO (10) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE tt_range2 PARTITION OF tt_range FOR VALUES FROM (10) TO (20);
CREATE TEMP TABLE tt_range3 (a int NOT NULL, b text);
ALTER TABLE tt_range ATTACH PARTITION tt_range3 FOR VALUES FROM (20) TO (30);
BEGIN; INSERT INTO tt_range VALUES (1, 'one'), (11, 'eleven'), (21, 'more'); UPDATE tt_range SET a = a + 10 WHERE a = 1; UPDATE tt_range SET a = a + 8 WHERE a = 1;
SELECT tableoid::regclass, * FROM tt_range ORDER BY a; ROLLBACK;
BEGIN; INSERT INTO tt_range VALUES (1, 'one'), (11, 'eleven'), (21, 'more'); UPDATE tt_range SET a = 12 WHERE a = 1; INSERT INTO tt_range VALUES (2, 'two');
SELECT tableoid::regclass, * FROM tt_range ORDER BY a; COMMIT;
SELECT tableoid::regclass, * FROM tt_range ORDER BY a;
CREATE TABLE tt_bad PARTITION OF tt_range FOR VALUES FROM (30) TO (40);
CREATE TEMP TABLE tt_whole (a int) PARTITION BY LIST (a) ON COMMIT DROP;
BEGIN;
CREATE TEMP TABLE tt_whole (a int) PARTITION BY LIST (a) ON COMMIT DROP;
CREATE TEMP TABLE tt_whole1 PARTITION OF tt_whole FOR VALUES IN (1) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE tt_whole2 PARTITION OF tt_whole FOR VALUES IN (2) ON COMMIT DROP;
INSERT INTO tt_whole VALUES (1), (2);
SELECT count(*) FROM tt_whole;
COMMIT;
SELECT count(*) FROM pg_class WHERE relname LIKE 'tt_whole%';
CREATE TEMP TABLE tt_above (a int) ON COMMIT DELETE ROWS;
CREATE TEMP TABLE tt_below (b int) INHERITS (tt_above);
BEGIN; INSERT INTO tt_above VALUES (1); INSERT INTO tt_below VALUES (2, 2); SELECT * FROM tt_above ORDER BY a; COMMIT;
SELECT * FROM tt_above;
-- 5. rewrites, other tablespaces and methods, maintenance
CLUSTER tt_a USING tt_a_pkey;
VACUUM FULL tt_a;
VACUUM (ANALYZE) tt_a;
SELECT * FROM tt_a ORDER BY id;
ALTER TABLE tt_a ALTER COLUMN id TYPE bigint;
ALTER TABLE tt_a ADD COLUMN n int DEFAULT 5;
CREATE INDEX ON tt_a (n);
CREATE INDEX CONCURRENTLY tt_a_v ON tt_a (v);
REINDEX INDEX CONCURRENTLY tt_a_v;
DROP INDEX CONCURRENTLY tt_a_v;
SELECT * FROM tt_a WHERE n = 5 ORDER BY id;
-- a rewrite that takes an index for a constraint
CREATE TEMP TABLE tt_typed (a int, b varchar(5), c int);
INSERT INTO tt_typed VALUES (1, 'x', 1), (2, 'y', 2);
CREATE UNIQUE INDEX tt_typed_a ON tt_typed (a);
CREATE UNIQUE INDEX tt_typed_b ON tt_typed (b);
BEGIN;
ALTER TABLE tt_typed ADD PRIMARY KEY USING INDEX tt_typed_a, ALTER a TYPE bigint;
ROLLBACK;
ALTER TABLE tt_typed ADD CONSTRAINT tt_typed_key PRIMARY KEY USING INDEX tt_typed_a, ADD UNIQUE USING INDEX tt_typed_b, ALTER a TYPE bigint, ALTER b TYPE varchar(10), ALTER c TYPE bigint;
INSERT INTO tt_typed VALUES (1, 'z', 3);
INSERT INTO tt_typed VALUES (3, 'y', 3);
SELECT c FROM tt_typed WHERE a = 2;
-- tablespaces
SET allow_in_place_tablespaces = true;
CREATE TABLESPACE am_temp_space LOCATION '';
ALTER TABLE tt_typed SET TABLESPACE am_temp_space;
ALTER INDEX tt_typed_key SET TABLESPACE am_temp_space;
SET temp_tablespaces = am_temp_space;
CREATE TEMP TABLE tt_there (a int PRIMARY KEY) ON COMMIT DELETE ROWS;
INSERT INTO tt_there VALUES (1);
SELECT c.relname, spcname FROM pg_class c JOIN pg_tablespace s ON s.oid = reltablespace WHERE relpersistence = 't' ORDER BY relname COLLATE "C";
INSERT INTO tt_typed VALUES (2, 'z', 3);
SELECT c FROM tt_typed WHERE a = 2;
DROP TABLE tt_typed, tt_there;
RESET temp_tablespaces;
DROP TABLESPACE am_temp_space;
TRUNCATE tt_a, tt_as RESTART IDENTITY;
SELECT (SELECT count(*) FROM tt_a) AS a, (SELECT count(*) FROM tt_as) AS as;
INSERT INTO tt_a VALUES (1, 'new');
ALTER TABLE tt_a SET LOGGED;
ALTER TABLE tt_a RENAME TO tt_renamed;
ALTER TABLE tt_renamed SET SCHEMA public;
SELECT * FROM tt_renamed;
CREATE TEMP VIEW tt_view AS SELECT * FROM tt_renamed;
SELECT * FROM tt_view;
DROP TABLE tt_renamed;
DROP TABLE tt_renamed CASCADE;
CREATE STATISTICS tt_statistics ON a, b FROM tt_as;
ANALYZE tt_as;
SELECT pg_stat_force_next_flush();
SELECT relname, n_tup_ins > 0 AS has_inserted FROM pg_stat_user_tables WHERE relname IN ('tt_as', 'tt_keep') ORDER BY 1;
-- 6. savepoints around definitions
BEGIN;
CREATE TEMP TABLE tt_s (a int PRIMARY KEY);
INSERT INTO tt_s VALUES (1);
SAVEPOINT one;
TRUNCATE tt_s;
INSERT INTO tt_s VALUES (2);
SAVEPOINT two;
DROP TABLE tt_s;
ROLLBACK TO two;
SELECT * FROM tt_s;
ROLLBACK TO one;
SELECT * FROM tt_s;
ALTER TABLE tt_s ADD COLUMN b text DEFAULT 'b';
CREATE INDEX tt_s_b ON tt_s (b);
SELECT * FROM tt_s WHERE b = 'b';
ROLLBACK TO one;
INSERT INTO tt_s VALUES (1);
ROLLBACK TO one;
INSERT INTO tt_s VALUES (3);
COMMIT;
SELECT * FROM tt_s ORDER BY a;
BEGIN; DROP TABLE tt_s; ROLLBACK;
SELECT * FROM tt_s ORDER BY a;
-- 7. cursors, functions, prepared statements
CREATE FUNCTION tt_work(n int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r bigint;
BEGIN
  CREATE TEMP TABLE tt_w (a int PRIMARY KEY, b int) ON COMMIT DROP;
  FOR i IN 1..n LOOP INSERT INTO tt_w VALUES (i, i % 7); END LOOP;
  UPDATE tt_w SET b = b + 1 WHERE a % 2 = 0;
  SELECT sum(b) INTO r FROM tt_w;
  DROP TABLE tt_w;
  RETURN r;
END $$;
SELECT tt_work(100), tt_work(50), tt_work(10);
SELECT tt_work(10);
PREPARE tt_q AS SELECT count(*) FROM tt_keep WHERE a = $1;
EXECUTE tt_q(1); EXECUTE tt_q(1); EXECUTE tt_q(1); EXECUTE tt_q(1); EXECUTE tt_q(1); EXECUTE tt_q(1);
TRUNCATE tt_keep;
EXECUTE tt_q(1);
DROP TABLE tt_keep;
EXECUTE tt_q(1);
CREATE TEMP TABLE tt_keep (a int);
INSERT INTO tt_keep VALUES (1), (1);
EXECUTE tt_q(1);
BEGIN;
DECLARE tt_c CURSOR WITH HOLD FOR SELECT a FROM tt_keep ORDER BY a;
FETCH tt_c;
COMMIT;
DROP TABLE tt_keep;
FETCH tt_c;
CLOSE tt_c;
BEGIN;
DECLARE tt_c CURSOR FOR SELECT * FROM tt_rows;
DROP TABLE tt_rows;
ROLLBACK;
-- 8. two-phase, and SERIALIZABLE
BEGIN; INSERT INTO tt_s VALUES (9); PREPARE TRANSACTION 'tt';
BEGIN; CREATE TEMP TABLE tt_prepared (a int); PREPARE TRANSACTION 'tt';
BEGIN; SELECT * FROM tt_s ORDER BY a LIMIT 1 FOR UPDATE; PREPARE TRANSACTION 'tt';
-- By compiled statements, too, which open no table.
SET plan_cache_mode = force_generic_plan;
CREATE TEMP TABLE tt_known (a int PRIMARY KEY, v int) USING mot ON COMMIT DELETE ROWS;
PREPARE tt_read AS SELECT v FROM tt_known WHERE a = 1;
PREPARE tt_write AS INSERT INTO tt_known VALUES ($1, 1);
EXECUTE tt_read;
EXECUTE tt_read;
EXECUTE tt_read;
EXECUTE tt_write(1);
EXECUTE tt_write(1);
EXECUTE tt_write(1);
BEGIN; EXECUTE tt_read; PREPARE TRANSACTION 'tt';
SET track_counts = off;
EXECUTE tt_write(1);
SELECT count(*) FROM tt_known;
RESET track_counts;
RESET plan_cache_mode;
DROP TABLE tt_known;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM tt_s;
INSERT INTO tt_s VALUES (10);
SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid();
COMMIT;
-- 9. what a session may take: it fails alone, and what it gives back it has again
SET mot.temp_memory = '1MB';
CREATE TEMP TABLE tt_much (a int PRIMARY KEY, b text);
CREATE TABLE tt_much_permanent (a int, b text);
INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1, 10000) g;
INSERT INTO tt_much_permanent SELECT g, repeat('x', 1000) FROM generate_series(1, 2000) g;
SELECT count(*) FROM tt_much;
INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1, 500) g;
BEGIN;
SAVEPOINT one;
INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1001, 10000) g;
ROLLBACK TO one;
INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1001, 1100) g;
COMMIT;
CREATE INDEX ON tt_much (b, a);
COPY tt_much FROM PROGRAM 'seq 2001 100000 | sed "s/$/\ty/"';
DELETE FROM tt_much WHERE a <= 500;
SELECT count(*) FROM tt_much;
TRUNCATE tt_much;
INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1, 500) g;
DO $$ BEGIN
  FOR i IN 1..50 LOOP
    DROP TABLE tt_much;
    CREATE TEMP TABLE tt_much (a int PRIMARY KEY, b text);
    INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1, 10) g;
    COMMIT;
  END LOOP;
  FOR i IN 1..20 LOOP
    TRUNCATE tt_much;
    INSERT INTO tt_much SELECT g, repeat('x', 1000) FROM generate_series(1, 300) g;
    COMMIT;
  END LOOP;
  FOR i IN 1..20 LOOP
    REINDEX TABLE tt_much;
    COMMIT;
  END LOOP;
END $$;
CREATE TEMP TABLE tt_too_much AS SELECT g, repeat('x', 1000) FROM generate_series(1, 10000) g;
CREATE TEMP TABLE tt_on_heap USING heap AS SELECT g, repeat('x', 1000) FROM generate_series(1, 10000) g;
ALTER TABLE tt_on_heap SET ACCESS METHOD mot;
SET mot.temp_memory = -1;
ALTER TABLE tt_on_heap SET ACCESS METHOD mot;
SELECT count(*), sum(length(repeat)) FROM tt_on_heap;
ALTER TABLE tt_on_heap SET ACCESS METHOD heap;
RESET mot.temp_memory;
DROP TABLE tt_much_permanent;
-- 10. what the extension tells of them
SELECT relname, rows FROM mot.stat_tables WHERE schemaname LIKE 'pg_temp%' AND relname IN ('tt_much', 'tt_s', 'tt_range2') ORDER BY relname;
SELECT relname, (mot.check(c.oid)).rows FROM pg_class c JOIN pg_am a ON a.oid = c.relam
  WHERE amname = 'mot' AND relpersistence = 't' AND relkind = 'r' AND NOT pg_is_other_temp_schema(relnamespace) ORDER BY relname COLLATE "C";
-- the log is told nothing of them
SELECT log_records AS before FROM mot.stat_transactions \gset
CREATE TEMP TABLE tt_unlogged (a int PRIMARY KEY);
INSERT INTO tt_unlogged SELECT generate_series(1, 1000);
UPDATE tt_unlogged SET a = a + 1000;
CREATE INDEX ON tt_unlogged (a);
TRUNCATE tt_unlogged;
SELECT log_records - :before AS records FROM mot.stat_transactions;
-- what goes at COMMIT takes columns and indexes of other tables with it
BEGIN;
CREATE TEMP TABLE tt_type (a int) ON COMMIT DROP;
ALTER TABLE tt_permanent ADD typed tt_type;
CREATE INDEX ON tt_permanent (typed);
CREATE TEMP TABLE tt_upper (a int PRIMARY KEY) ON COMMIT DROP;
CREATE TEMP TABLE tt_lower (a int REFERENCES tt_upper DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP;
INSERT INTO tt_lower VALUES (1);
INSERT INTO tt_upper VALUES (1);
CREATE TEMP TABLE tt_emptied (a int PRIMARY KEY) ON COMMIT DELETE ROWS;
INSERT INTO tt_emptied VALUES (1);
DECLARE tt_cursor CURSOR WITH HOLD FOR SELECT * FROM tt_lower, tt_emptied;
COMMIT;
FETCH ALL FROM tt_cursor;
CLOSE tt_cursor;
SELECT count(*) FROM tt_emptied;
SELECT attname FROM pg_attribute WHERE attrelid = 'tt_permanent'::regclass AND attnum > 0 AND NOT attisdropped;
SELECT count(*) FROM pg_index WHERE indrelid = 'tt_permanent'::regclass;
-- 11. all of them go
DISCARD TEMP;
SELECT * FROM tt_methods();
CREATE TEMP TABLE tt_again (a int PRIMARY KEY) ON COMMIT DELETE ROWS;
INSERT INTO tt_again VALUES (1);
DISCARD ALL;
SELECT * FROM tt_methods();
DROP TABLE tt_permanent;
DROP FUNCTION tt_work, tt_methods;
