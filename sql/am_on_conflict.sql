-- INSERT ... ON CONFLICT on memory-optimized tables, alone, among partitions, in WITH, in functions; heap is the oracle.
SET client_min_messages = warning;
CREATE SCHEMA am_on_conflict;
SET search_path = am_on_conflict;
CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE, n int DEFAULT 0) USING mot;
INSERT INTO t VALUES (1, 'one') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 'two') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (2, 'one') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 'uno') ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b, n = t.n + 1 RETURNING *;
INSERT INTO t VALUES (3, 'uno') ON CONFLICT (b) DO UPDATE SET n = t.n + 10 WHERE t.n = 1 RETURNING *;
INSERT INTO t VALUES (3, 'uno') ON CONFLICT (b) DO UPDATE SET n = t.n + 10 WHERE t.n = 1 RETURNING *;
INSERT INTO t VALUES (3, 'uno') ON CONFLICT ON CONSTRAINT t_b_key DO UPDATE SET b = 'due';
INSERT INTO t VALUES (1, 'x') ON CONFLICT (b) DO NOTHING;
INSERT INTO t VALUES (2, 'two'), (2, 'two') ON CONFLICT (a) DO UPDATE SET n = 1;
INSERT INTO t SELECT g % 5, 'g' || g FROM generate_series(1, 20) g ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (n) DO NOTHING;
SELECT * FROM t ORDER BY a;
EXPLAIN (COSTS OFF) INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET n = 5;
-- 18 tells rows with decimals
CREATE FUNCTION analyzed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || query LOOP
    RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
  END LOOP;
END $$;
SELECT analyzed('INSERT INTO t VALUES (1, ''x'') ON CONFLICT (a) DO UPDATE SET n = 5');
-- prepared, in a loop
PREPARE upsert (int) AS INSERT INTO t VALUES ($1, 'p' || $1) ON CONFLICT (a) DO UPDATE SET n = t.n + 1;
EXECUTE upsert (10);
EXECUTE upsert (10);
DO $$ BEGIN FOR i IN 1 .. 20 LOOP INSERT INTO t VALUES (11, 'loop') ON CONFLICT (a) DO UPDATE SET n = t.n + 1; END LOOP; END $$;
-- in WITH, beside another
WITH w AS (INSERT INTO t VALUES (12, 'w'), (1, 'w1') ON CONFLICT (a) DO UPDATE SET n = t.n + 100 RETURNING a)
  INSERT INTO t SELECT a + 100, 'w' || a FROM w ON CONFLICT DO NOTHING;
WITH w AS (INSERT INTO t VALUES (12, 'w') ON CONFLICT (a) DO UPDATE SET n = t.n + 100 RETURNING n) SELECT * FROM w;
SELECT * FROM t WHERE a >= 10 ORDER BY a;
-- errors in the middle, and after them
BEGIN;
SAVEPOINT s;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET n = 1 / (t.a - 1);
ROLLBACK TO s;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (a) DO UPDATE SET n = 1;
COMMIT;
SELECT * FROM t WHERE a = 1;

-- partitions
CREATE TABLE p (a int, b int, n int DEFAULT 0, PRIMARY KEY (a, b)) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (b);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES IN (1) USING mot;
CREATE TABLE p22 PARTITION OF p2 DEFAULT;
INSERT INTO p VALUES (1, 1), (2, 1), (2, 2) ON CONFLICT DO NOTHING;
INSERT INTO p VALUES (1, 1), (2, 1), (2, 2), (1, 2) ON CONFLICT DO NOTHING;
INSERT INTO p VALUES (1, 1), (2, 1), (2, 2), (1, 2) ON CONFLICT (a, b) DO UPDATE SET n = p.n + 1;
INSERT INTO p VALUES (1, 1), (1, 1) ON CONFLICT (a, b) DO UPDATE SET n = p.n + 1;
-- an invalidation, a planner call and a query of the very partitions between start and end
CREATE FUNCTION busy(x int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
DECLARE found int;
BEGIN
  ANALYZE p1;
  ANALYZE p21;
  EXECUTE format('SELECT n FROM p1 WHERE a = 1 AND b = %s', x) INTO found;
  EXECUTE 'SELECT count(*) FROM p1 WHERE (a, b) > (1, 0)' INTO found;
  RETURN 1;
END $$;
INSERT INTO p SELECT x.a, x.b FROM (VALUES (1, 1), (1, 3), (2, 1), (2, 3)) AS x (a, b) WHERE busy(x.b) = 1 ON CONFLICT (a, b) DO UPDATE SET n = p.n + busy(EXCLUDED.b);
SELECT tableoid::regclass, * FROM p ORDER BY a, b;
-- errors between start and end, caught and not
CREATE FUNCTION failing() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO p SELECT 1, g FROM generate_series(1, 5) g ON CONFLICT (a, b) DO UPDATE SET n = 1 / (EXCLUDED.b - 2);
  RETURN 0;
EXCEPTION WHEN division_by_zero THEN
  INSERT INTO p VALUES (1, 1) ON CONFLICT (a, b) DO UPDATE SET n = 1000;
  RETURN 1;
END $$;
SELECT failing();
BEGIN;
INSERT INTO p SELECT 1, g FROM generate_series(1, 5) g ON CONFLICT (a, b) DO UPDATE SET n = 1 / (EXCLUDED.b - 2);
ROLLBACK;
INSERT INTO p SELECT x, failing() FROM generate_series(1, 2) x ON CONFLICT (a, b) DO UPDATE SET n = 2000;
SELECT tableoid::regclass, * FROM p ORDER BY a, b;
EXPLAIN (COSTS OFF) SELECT n FROM p1 WHERE a = 1 AND b = 1;
SELECT n FROM p1 WHERE a = 1 AND b = 1;
SELECT relname, amname FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE relnamespace = 'am_on_conflict'::regnamespace AND relkind = 'i' ORDER BY 1;
-- rows that bring more columns than the table has, dropped columns, keys that a function computes
CREATE TABLE q (gone int, a int, b text, n int DEFAULT 0) PARTITION BY LIST (a);
ALTER TABLE q DROP COLUMN gone;
CREATE TABLE q1 PARTITION OF q FOR VALUES IN (1, 3) USING mot;
CREATE TABLE q2 (n int DEFAULT 0, b text, more text, a int) USING mot;
ALTER TABLE q2 DROP COLUMN more;
ALTER TABLE q ATTACH PARTITION q2 FOR VALUES IN (2);
ALTER TABLE q ADD PRIMARY KEY (a);
INSERT INTO q (a, b) SELECT x, 'x' || x FROM generate_series(1, 3) x ORDER BY hashint4(x) ON CONFLICT (a) DO UPDATE SET n = q.n + 1;
INSERT INTO q (a, b) SELECT x, 'y' || x FROM generate_series(1, 3) x ORDER BY -x, x ON CONFLICT (a) DO UPDATE SET n = q.n + 1, b = EXCLUDED.b RETURNING tableoid::regclass, *;
INSERT INTO q (a, b) VALUES (4, 'z') ON CONFLICT DO NOTHING;
CREATE FUNCTION put(x int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO q (a, b) VALUES (x % 3 + 1, 'placed') ON CONFLICT (a) DO UPDATE SET n = q.n + 100;
  RETURN x % 2;
END $$;
CREATE FUNCTION place(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN put(x); END $$;
CREATE TABLE r (a int, b int) PARTITION BY LIST (place(a));
CREATE TABLE r0 PARTITION OF r FOR VALUES IN (0) USING mot;
CREATE TABLE r1 PARTITION OF r FOR VALUES IN (1) USING mot;
CREATE UNIQUE INDEX ON r0 (a);
CREATE UNIQUE INDEX ON r1 (a);
INSERT INTO r SELECT x % 4, x FROM generate_series(1, 8) x ON CONFLICT DO NOTHING RETURNING tableoid::regclass, *;
SELECT tableoid::regclass, a, b, n > 100 AS often FROM q ORDER BY a;
-- statements that fail, one after another
DO $$
BEGIN
  FOR i IN 1 .. 50 LOOP
    BEGIN
      INSERT INTO p SELECT 1 + g % 2, g FROM generate_series(1, 5) g ON CONFLICT (a, b) DO UPDATE SET n = 1 / (EXCLUDED.b - 4);
    EXCEPTION WHEN division_by_zero THEN
      NULL;
    END;
  END LOOP;
END $$;
-- triggers of partitions, and what they have cost
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER noted_before BEFORE INSERT ON q FOR EACH ROW EXECUTE FUNCTION noted();
CREATE TRIGGER noted_after AFTER INSERT OR UPDATE ON q FOR EACH ROW EXECUTE FUNCTION noted();
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE INFO '% rows', (SELECT count(*) FROM made); RETURN NULL; END $$;
CREATE TRIGGER counted AFTER INSERT ON q REFERENCING NEW TABLE AS made FOR EACH STATEMENT EXECUTE FUNCTION counted();
DELETE FROM q WHERE a = 3;
SELECT line FROM analyzed('INSERT INTO q (a, b) VALUES (1, NULL), (2, NULL), (3, NULL) ON CONFLICT (a) DO UPDATE SET b = NULL') AS line WHERE line LIKE 'Trigger%';
SELECT rows FROM mot.check('q1') UNION ALL SELECT rows FROM mot.check('q2');
-- an index's function catches an error, or writes such rows itself
-- Core warns of a lock of its own then.
SET client_min_messages = error;
CREATE TABLE seen (a int PRIMARY KEY, n int DEFAULT 1) USING mot;
CREATE FUNCTION see(x int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO seen VALUES (x) ON CONFLICT (a) DO UPDATE SET n = seen.n + 1;
  RETURN x;
END $$;
CREATE FUNCTION inverse(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN 1000 / see(x);
EXCEPTION WHEN division_by_zero THEN
  RETURN -1;
END $$;
CREATE TABLE c (a int PRIMARY KEY, b int) USING mot;
CREATE INDEX ON c (inverse(b));
INSERT INTO c VALUES (1, 0) ON CONFLICT DO NOTHING;
INSERT INTO c VALUES (1, 5), (2, 0), (1, 6) ON CONFLICT DO NOTHING RETURNING *;
WITH x AS MATERIALIZED (SELECT g, 0 AS b FROM generate_series(1, 3) g)
  INSERT INTO c SELECT g, b FROM x ON CONFLICT (a) DO UPDATE SET b = 7 RETURNING *;
SELECT a, b FROM c WHERE inverse(b) = -1 ORDER BY a;
SELECT a FROM seen ORDER BY a;
SELECT rows, entries FROM mot.check('c');
-- such a function writes, and then the row has to go
CREATE TABLE d (a int PRIMARY KEY, b int) USING mot;
CREATE FUNCTION rival(x int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('mot_test.busy', true) IS DISTINCT FROM '1' AND EXISTS (SELECT FROM d WHERE a = 1) THEN
    PERFORM set_config('mot_test.busy', '1', false);
    INSERT INTO d VALUES (99, x);
  END IF;
  RETURN x;
END $$;
CREATE FUNCTION rivalled(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN rival(x); END $$;
CREATE UNIQUE INDEX ON d (rivalled(b));
CREATE INDEX ON d (b);
INSERT INTO d VALUES (1, 5) ON CONFLICT DO NOTHING;
SELECT * FROM d;
SELECT rows FROM mot.check('d');
INSERT INTO d VALUES (1, 6) ON CONFLICT DO NOTHING;
SELECT * FROM d ORDER BY a;
SELECT rows, entries FROM mot.check('d');

DROP SCHEMA am_on_conflict CASCADE;
