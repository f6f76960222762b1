-- Compiled statements, kept plan states, MOT Scan and MOT Aggregate, which are looked up once and used for long. `.ci/asserts` runs this with
-- core's caches thrown away at every chance (debug_discard_caches).
SET client_min_messages = warning;
CREATE SCHEMA caches_compiled;
SET search_path = caches_compiled;
CREATE TABLE t (id int PRIMARY KEY, k text UNIQUE, n numeric(8, 2), at timestamptz DEFAULT '2020-01-01', CHECK (n < 1000), CHECK (length(k) < 20)) USING mot;
CREATE TABLE u (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE) USING mot;
CREATE INDEX ON u (t);
PREPARE ins (int, text) AS INSERT INTO t VALUES ($1, $2, $1) RETURNING id, n;
PREPARE ups (int, text) AS INSERT INTO t VALUES ($1, $2, $1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1, k = excluded.k;
PREPARE chg (int, numeric) AS UPDATE t SET n = $2 WHERE id = $1 RETURNING *;
PREPARE del (int) AS DELETE FROM t WHERE id = $1;
PREPARE sel (int) AS SELECT k, n, at FROM t WHERE id = $1;
PREPARE rng (int, int) AS SELECT k FROM t WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT 2;
PREPARE lck (int) AS SELECT id FROM t WHERE id = $1 FOR UPDATE;
PREPARE jn (int) AS SELECT u.id, t.k FROM u JOIN t ON t.id = u.t WHERE u.t = $1 ORDER BY u.id;
PREPARE agg (int) AS SELECT k, count(*), sum(n) FROM t WHERE n > $1 GROUP BY k ORDER BY k;
EXECUTE ins (1, 'one');
EXECUTE ins (2, 'two');
EXECUTE ins (3, 'three');
EXECUTE ins (3, 'more');
EXECUTE ins (4, 'three');
EXECUTE ins (1000, 'much');
EXECUTE ins (4, 'a name that is too long');
EXECUTE ups (3, 'three');
EXECUTE ups (4, 'three');
EXECUTE ups (4, 'four');
EXECUTE chg (1, 11);
EXECUTE chg (1, 1111);
EXECUTE sel (1);
EXECUTE sel (3);
EXECUTE rng (1, 3);
EXECUTE rng (2, 9);
INSERT INTO u VALUES (1, 1), (2, 1), (3, 2), (4, 4);
INSERT INTO u VALUES (5, 5);
EXECUTE jn (1);
EXECUTE jn (2);
EXECUTE agg (3);
EXECUTE lck (2);
EXECUTE del (2);
SELECT * FROM u ORDER BY id;
-- a plan that its function keeps while tables change under it
CREATE FUNCTION kept(i int) RETURNS SETOF text LANGUAGE sql VOLATILE AS 'SELECT k FROM caches_compiled.t WHERE id = i';
CREATE FUNCTION sums(i int) RETURNS numeric LANGUAGE sql VOLATILE AS 'SELECT sum(t.n) FROM caches_compiled.u JOIN caches_compiled.t ON t.id = u.t WHERE u.t >= i';
CREATE FUNCTION made(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('CREATE TABLE made_%s (a int PRIMARY KEY) USING mot', i); EXECUTE format('INSERT INTO made_%s VALUES (1)', i); RETURN i; END $$;
SELECT g, (SELECT string_agg(k, ',') FROM kept(g) k) AS kept, sums(g), made(g) FROM generate_series(1, 4) g;
-- loops of PL/pgSQL: every verb, an error that is caught, another definition between two executions
DO $$
DECLARE i int; found t%ROWTYPE; said text := '';
BEGIN
  FOR i IN 10 .. 13 LOOP
    INSERT INTO t VALUES (i, 'loop ' || i, i);
    UPDATE t SET n = n + 1 WHERE id = i;
    BEGIN
      UPDATE t SET n = 5000 WHERE id = i;
    EXCEPTION WHEN check_violation THEN said := said || ' ' || i;
    END;
    SELECT * INTO found FROM t WHERE id = i;
    IF i = 11 THEN
      ALTER TABLE t ADD COLUMN extra int DEFAULT 5;
      TRUNCATE u;
    END IF;
    DELETE FROM t WHERE id = i - 1;
  END LOOP;
  RAISE WARNING '%: %', said, found;
END $$;
SELECT * FROM t ORDER BY id;
-- cursors that stay open over definitions of other tables, and over changes of their own
BEGIN;
DECLARE one SCROLL CURSOR FOR SELECT id, k FROM t WHERE id > 0 ORDER BY id;
DECLARE two CURSOR FOR SELECT id, extra FROM t WHERE n > 1;
DECLARE three CURSOR FOR SELECT count(*), max(k) FROM t WHERE n > 1;
FETCH 2 FROM one;
FETCH 1 FROM two;
CREATE TABLE beside (a int PRIMARY KEY) USING mot;
UPDATE t SET n = n + 1 WHERE CURRENT OF two;
FETCH BACKWARD 1 FROM one;
FETCH ALL FROM one;
FETCH ALL FROM two;
FETCH ALL FROM three;
ALTER TABLE t DROP COLUMN extra;
COMMIT;
-- conditions and aggregates where the rows lie, bitmaps
SET enable_indexscan = off;
SELECT id FROM t WHERE id IN (1, 4, 13) AND k LIKE '%o%' ORDER BY id;
SET enable_bitmapscan = off;
SELECT id FROM t WHERE n > 4 AND k <> 'four' ORDER BY id;
SELECT count(*), sum(n), min(k), max(at) FROM t WHERE n > 4;
SELECT id % 2 AS odd, count(*), avg(n) FROM t GROUP BY 1 ORDER BY 1;
DROP SCHEMA caches_compiled CASCADE;
