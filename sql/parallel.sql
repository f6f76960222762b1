-- Parallel queries: workers scan memory-optimized tables with the leader, and see what it sees.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA parallel;
SET search_path = parallel;
CREATE FOREIGN TABLE pm (id int PRIMARY KEY, grp int NOT NULL, val bigint, txt text) SERVER mot;
CREATE TABLE ph (LIKE pm);
ALTER TABLE ph ADD PRIMARY KEY (id);
CREATE INDEX ON pm (grp);
CREATE INDEX ON ph (grp);
INSERT INTO ph SELECT n, n % 17, CASE WHEN n % 11 <> 0 THEN n * 3 END, repeat('x', n % 50) || n FROM generate_series(1, 30000) n;
INSERT INTO pm SELECT * FROM ph;
DELETE FROM ph WHERE id % 10 = 3;
DELETE FROM pm WHERE id % 10 = 3;
ANALYZE pm;
ANALYZE ph;

-- A small table is not worth it, and a large one is in its own time.
EXPLAIN (COSTS OFF) SELECT count(*) FROM pm WHERE val % 7 = 3;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM pm WHERE val % 7 = 3;
EXPLAIN (COSTS OFF) SELECT grp, count(*) FROM pm GROUP BY grp;
-- One key needs no workers, nor does what is locked or changed.
EXPLAIN (COSTS OFF) SELECT * FROM pm WHERE id = 5;
EXPLAIN (COSTS OFF) SELECT * FROM pm WHERE val > 5 FOR UPDATE;
EXPLAIN (COSTS OFF) UPDATE pm SET val = val WHERE val % 7 = 3;

-- The same rows as from a heap table, by all processes, and by workers alone.
SET parallel_leader_participation = on;
SELECT count(*), count(val), sum(val), min(id), max(txt COLLATE "C"), sum(length(txt)) FROM pm;
SELECT count(*), count(val), sum(val), min(id), max(txt COLLATE "C"), sum(length(txt)) FROM ph;
SET parallel_leader_participation = off;
SELECT count(*), count(val), sum(val), min(id), max(txt COLLATE "C"), sum(length(txt)) FROM pm;
SELECT grp, count(*), sum(val), avg(val)::numeric(20, 3) FROM pm WHERE txt LIKE '%7%' AND val IS NOT NULL GROUP BY grp
EXCEPT
SELECT grp, count(*), sum(val), avg(val)::numeric(20, 3) FROM ph WHERE txt LIKE '%7%' AND val IS NOT NULL GROUP BY grp;
SELECT count(*) FROM (SELECT * FROM pm EXCEPT SELECT * FROM ph) d;
SELECT count(*) FROM (SELECT * FROM ph EXCEPT SELECT * FROM pm) d;
SELECT count(*), count(DISTINCT ctid), count(DISTINCT tableoid) FROM pm;
SELECT id, grp FROM pm WHERE val % 5000 = 1 ORDER BY id LIMIT 5;
RESET parallel_leader_participation;

-- Joins with heap tables, with each other, by hash and by key; and scans that begin again.
SELECT count(*), sum(a.val) FROM pm a JOIN pm b ON a.id = b.id + 1 WHERE b.grp < 5;
SELECT count(*), sum(a.val) FROM ph a JOIN ph b ON a.id = b.id + 1 WHERE b.grp < 5;
SELECT count(*), sum(a.val) FROM pm a JOIN ph b ON a.id = b.id + 1 WHERE b.grp < 5;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*), sum(a.val) FROM ph b JOIN pm a ON a.id = b.id + 1 WHERE b.grp < 5;
RESET enable_hashjoin;
RESET enable_mergejoin;
EXPLAIN (COSTS OFF) SELECT g, (SELECT count(*) FROM pm WHERE val % 3 = g) FROM generate_series(0, 2) g;
SET enable_material = off;
SELECT g, c FROM generate_series(0, 3) g, LATERAL (SELECT count(*) AS c FROM pm WHERE grp >= g AND val % 3 = 0) x ORDER BY g;
SELECT g, c FROM generate_series(0, 3) g, LATERAL (SELECT count(*) AS c FROM ph WHERE grp >= g AND val % 3 = 0) x ORDER BY g;
-- What stands below a Gather begins again with it, read to its end and not.
EXPLAIN (COSTS OFF) SELECT * FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT count(val) FROM pm WHERE val % 3 = 0) s ON true;
SELECT * FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT count(val) FROM pm WHERE val % 3 = 0) s ON true;
SELECT x, count(*), count(DISTINCT id) FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT id FROM pm WHERE val % 3 = 0 LIMIT 300) s ON true GROUP BY x ORDER BY x;
SET parallel_leader_participation = off;
SELECT x, count(*), count(DISTINCT id) FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT id FROM pm WHERE val % 3 = 0 LIMIT 300) s ON true GROUP BY x ORDER BY x;
SELECT * FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT count(val) FROM pm WHERE val % 3 = 0) s ON true;
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT * FROM (VALUES (1), (2), (3)) v (x) LEFT JOIN (SELECT count(val) FROM pm WHERE val % 3 = 0) s ON true;
RESET max_parallel_workers;
RESET enable_material;
SELECT count(*) FROM (SELECT id FROM pm WHERE val > 5 LIMIT 7) x;
SELECT count(*) FROM pm WHERE grp = (SELECT max(grp) FROM pm WHERE val % 2 = 0) AND val > (SELECT avg(val) FROM ph);

-- What the transaction itself has written, through more savepoints than a snapshot lists, and has taken back.
BEGIN;
UPDATE pm SET val = -1 WHERE id % 4 = 0;
UPDATE ph SET val = -1 WHERE id % 4 = 0;
DO $$
BEGIN
  FOR i IN 1..100 LOOP
    BEGIN
      INSERT INTO pm VALUES (100000 + i, i % 17, i, 'new');
      INSERT INTO ph VALUES (100000 + i, i % 17, i, 'new');
      IF i % 2 = 0 THEN
        RAISE EXCEPTION 'back';
      END IF;
    EXCEPTION WHEN raise_exception THEN
      NULL;
    END;
  END LOOP;
END $$;
SAVEPOINT before;
DELETE FROM pm WHERE grp = 3;
SELECT count(*), sum(val) FROM pm WHERE length(txt) > 0;
ROLLBACK TO before;
DELETE FROM pm WHERE grp = 4;
DELETE FROM ph WHERE grp = 4;
SELECT count(*), sum(val), count(*) FILTER (WHERE txt = 'new') FROM pm WHERE length(txt) > 0;
SELECT count(*), sum(val), count(*) FILTER (WHERE txt = 'new') FROM ph WHERE length(txt) > 0;
-- The same statement's earlier rows are not seen, nor what comes after a cursor.
DECLARE c CURSOR FOR SELECT count(*) FROM pm WHERE val = -1;
UPDATE pm SET val = -2 WHERE val = -1;
FETCH c;
SELECT count(*) FROM pm WHERE val = -2;
CLOSE c;
TRUNCATE pm;
SELECT count(*) FROM pm WHERE val IS DISTINCT FROM 0;
INSERT INTO pm SELECT n, 1, n, '' FROM generate_series(1, 5000) n;
SELECT count(*), sum(val) FROM pm WHERE val IS DISTINCT FROM 0;
ROLLBACK;
SELECT count(*), sum(val) FROM pm WHERE val IS DISTINCT FROM 0;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*), sum(val) FROM pm WHERE val IS DISTINCT FROM 0;
UPDATE pm SET val = 0 WHERE id <= 10;
SELECT count(*), sum(val) FROM pm WHERE val IS DISTINCT FROM 0;
ROLLBACK;

-- A plan made for workers runs in a SERIALIZABLE transaction, which plans none.
SET plan_cache_mode = force_generic_plan;
PREPARE counted(int) AS SELECT count(*), sum(val) FROM pm WHERE val % 7 = $1;
EXPLAIN (COSTS OFF) EXECUTE counted(3);
EXECUTE counted(3);
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE counted(3);
UPDATE pm SET val = val WHERE id = 1;
EXECUTE counted(3);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXPLAIN (COSTS OFF) SELECT count(*) FROM pm WHERE val % 7 = 3;
COMMIT;
DEALLOCATE counted;
RESET plan_cache_mode;

-- Errors of workers are the query's, and leave nothing behind.
\set VERBOSITY terse
SELECT sum(1 / (id - 29999)) FROM pm WHERE val > 0;
\set VERBOSITY default
SELECT sum(1 / (id - 29993)) FROM pm WHERE val > 0;
SELECT count(*) FROM pm WHERE val > 0;

-- Tables made of what workers read; functions; partitions of both kinds.
CREATE TABLE made AS SELECT grp, val FROM pm WHERE val % 2 = 1;
SELECT count(*), sum(val) FROM made;
DROP TABLE made;
SET default_table_access_method = mot;
CREATE TABLE made AS SELECT id, grp, val FROM pm WHERE val % 2 = 1;
RESET default_table_access_method;
SELECT count(*), sum(val) FROM made WHERE val IS NOT NULL;
DROP FOREIGN TABLE made;
CREATE FUNCTION counted() RETURNS TABLE (n bigint) LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT count(*) FROM pm WHERE val % 7 = 3; END $$;
SELECT * FROM counted();
DROP FUNCTION counted();
CREATE TABLE parts (id int NOT NULL, val bigint) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE parts_m PARTITION OF parts FOR VALUES FROM (0) TO (10000) SERVER mot;
CREATE TABLE parts_h PARTITION OF parts FOR VALUES FROM (10000) TO (20000);
CREATE FOREIGN TABLE parts_n PARTITION OF parts FOR VALUES FROM (20000) TO (30001) SERVER mot;
INSERT INTO parts SELECT id, val FROM ph;
ANALYZE parts;
SELECT count(*), sum(val) FROM parts WHERE val % 2 = 0;
SELECT count(*), sum(val) FROM ph WHERE val % 2 = 0;
DROP TABLE parts;

SELECT mot.check('pm') IS NOT NULL AS checked;
DROP FOREIGN TABLE pm;
DROP TABLE ph;
DROP SCHEMA parallel CASCADE;
