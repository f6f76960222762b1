-- Joins, aggregates, sorts and subqueries over memory-optimized tables keep core's plan states between executions. The whole suite
-- runs with mot.compiled_statements = on and = always; here is what only repeated, suspended and failing executions show.
SET mot.compiled_statements = always;
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CREATE FOREIGN TABLE ks (id int PRIMARY KEY, grp int NOT NULL, n numeric(10, 2), t text) SERVER mot;
CREATE INDEX ON ks (grp, n);
CREATE FOREIGN TABLE kd (grp int PRIMARY KEY, name text NOT NULL, next int) SERVER mot;
INSERT INTO kd SELECT g, 'group ' || g, g + 1 FROM generate_series(1, 5) g;
INSERT INTO ks SELECT i, i % 4 + 1, nullif(i % 7, 0) * 1.25, CASE WHEN i % 5 > 0 THEN 't' || i % 3 END FROM generate_series(1, 60) i;

-- Joins of point look-ups and ranges.
PREPARE pair(int) AS SELECT s.id, s.n, d.name FROM ks s JOIN kd d ON d.grp = s.grp WHERE s.id = $1;
PREPARE outer_pair(int) AS SELECT d.grp, d.name, s.id FROM kd d LEFT JOIN ks s ON s.grp = d.grp AND s.n < $1 ORDER BY 1, 3;
PREPARE chain(int) AS SELECT a.name, b.name AS next, count(s.id) FROM kd a JOIN kd b ON b.grp = a.next LEFT JOIN ks s ON s.grp = b.grp
    WHERE a.grp >= $1 GROUP BY 1, 2 ORDER BY 1, 2;
EXECUTE pair(1);
EXECUTE pair(2);
EXECUTE pair(99);
EXECUTE pair(NULL);
EXECUTE outer_pair(2);
EXECUTE outer_pair(0);
EXECUTE chain(1);
EXECUTE chain(3);
EXECUTE chain(9);

-- Aggregates: of nothing, of NULLs, of every kind of state, DISTINCT, ordered, filtered, grouped.
PREPARE agg(int, int) AS SELECT count(*), count(n), sum(n), avg(n), min(t), max(n), sum(id), avg(id), sum(id::bigint), stddev(n),
    string_agg(t, ',' ORDER BY id), count(DISTINCT t), bool_and(n > 1), array_agg(DISTINCT grp) FILTER (WHERE id > 10)
    FROM ks WHERE id BETWEEN $1 AND $2;
EXECUTE agg(1, 20);
EXECUTE agg(7, 7);
EXECUTE agg(100, 200);
EXECUTE agg(NULL, 1);
EXECUTE agg(1, 60);
PREPARE groups(int) AS SELECT grp, count(*), sum(n) FROM ks WHERE id <= $1 GROUP BY grp HAVING count(*) > 1 ORDER BY grp;
EXECUTE groups(60);
EXECUTE groups(8);
EXECUTE groups(0);
PREPARE extremes(int) AS SELECT min(id), max(id) FROM ks WHERE id > $1;
EXECUTE extremes(10);
EXECUTE extremes(60);
EXECUTE extremes(59);

-- LIMIT and OFFSET by parameter, sorts, DISTINCT.
PREPARE page(bigint, bigint) AS SELECT id FROM ks ORDER BY id LIMIT $1 OFFSET $2;
EXECUTE page(3, 0);
EXECUTE page(2, 58);
EXECUTE page(0, 0);
EXECUTE page(NULL, 57);
EXECUTE page(-1, 0);
EXECUTE page(1, -1);
EXECUTE page(1, 1);
PREPARE sorted(int, int) AS SELECT t, id FROM ks WHERE id <= $1 ORDER BY t NULLS FIRST, id DESC LIMIT $2;
EXECUTE sorted(12, 4);
EXECUTE sorted(6, NULL);
EXECUTE sorted(60, 3);
PREPARE kinds(int) AS SELECT DISTINCT t FROM ks WHERE id < $1 ORDER BY t;
EXECUTE kinds(60);
EXECUTE kinds(2);

-- Subqueries: initial plans, correlated, hashed, EXISTS, IN; all must be computed anew.
PREPARE last(int) AS SELECT id, n FROM ks WHERE grp = $1 AND id = (SELECT max(id) FROM ks WHERE grp = $1);
EXECUTE last(1);
EXECUTE last(2);
EXECUTE last(9);
PREPARE scalar AS SELECT grp, (SELECT max(id) FROM ks), (SELECT sum(n) FROM ks s WHERE s.grp = kd.grp) FROM kd ORDER BY grp;
EXECUTE scalar;
INSERT INTO ks VALUES (61, 5, 100, 'new');
EXECUTE scalar;
DELETE FROM ks WHERE id = 61;
EXECUTE scalar;
PREPARE low(int, numeric) AS SELECT count(*) FROM (SELECT id FROM ks WHERE n < $2 AND id IN (
    SELECT s.id FROM kd d JOIN ks s ON s.grp = d.grp AND s.id >= d.next - 3 AND s.id < d.next + 20 WHERE d.grp = $1)) AS low;
EXECUTE low(1, 5);
EXECUTE low(2, 3);
EXECUTE low(9, 3);
PREPARE absent(int) AS SELECT grp FROM kd WHERE NOT EXISTS (SELECT 1 FROM ks WHERE ks.grp = kd.grp AND id > $1) ORDER BY grp;
EXECUTE absent(0);
EXECUTE absent(57);
PREPARE hashed(int) AS SELECT id FROM ks WHERE grp NOT IN (SELECT next FROM kd WHERE grp > $1) AND id < 8 ORDER BY id;
EXECUTE hashed(1);
EXECUTE hashed(3);
UPDATE kd SET next = 1 WHERE grp = 5;
EXECUTE hashed(3);
UPDATE kd SET next = 6 WHERE grp = 5;

-- Errors in the middle leave nothing behind.
PREPARE ratio(int) AS SELECT sum(id / (id - $1)) FROM ks s JOIN kd d USING (grp);
EXECUTE ratio(0);
EXECUTE ratio(30);
EXECUTE ratio(0);
CREATE FUNCTION ks_errors() RETURNS text LANGUAGE plpgsql AS $$
DECLARE seen text := ''; x numeric;
BEGIN
    FOR k IN 28 .. 33 LOOP
        BEGIN
            SELECT sum(60 / (id - k)) INTO x FROM ks s JOIN kd d USING (grp) WHERE id < 32;
            seen := seen || ' ' || x;
        EXCEPTION WHEN division_by_zero THEN seen := seen || ' error';
        END;
    END LOOP;
    RETURN seen;
END $$;
SELECT ks_errors();
SELECT ks_errors();

-- A cache of inner rows, one-time filters, rows compared with a subquery's, DISTINCT ON, LATERAL, anti joins.
CREATE FOREIGN TABLE ka (id int PRIMARY KEY, g int, v numeric) SERVER mot;
CREATE FOREIGN TABLE kb (g int PRIMARY KEY, t text, nx int) SERVER mot;
INSERT INTO ka SELECT i, i % 10, i FROM generate_series(0, 999) i;
INSERT INTO kb SELECT i, 'b' || i, i FROM generate_series(0, 9) i;
ANALYZE ka;
ANALYZE kb;
PREPARE cached AS SELECT sum(length(t)) FROM ka JOIN kb USING (g);
-- The nodes of a plan that are not scans, without the decimals that 18 gives to counts of rows.
CREATE FUNCTION pg_temp.explained(statement text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, statement) LOOP
    CONTINUE WHEN line !~ 'Nested|Aggregate|Memoize|Cache|SubPlan';
    RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
  END LOOP;
END $$;
SELECT pg_temp.explained('EXECUTE cached');
EXECUTE cached;
UPDATE kb SET t = 'longer' WHERE g < 5;
EXECUTE cached;
TRUNCATE kb;
EXECUTE cached;
INSERT INTO kb SELECT i, 'b' || i, i FROM generate_series(0, 9) i;
EXECUTE cached;
PREPARE one_time(int) AS SELECT count(*) FROM ka WHERE EXISTS (SELECT 1 FROM kb WHERE nx > $1);
EXECUTE one_time(1);
EXECUTE one_time(20);
EXECUTE one_time(8);
DELETE FROM kb WHERE g = 9;
EXECUTE one_time(8);
PREPARE compared(int) AS SELECT count(*) FROM ka WHERE (id, g) = (SELECT max(id), 3 FROM ka WHERE g = $1);
EXECUTE compared(3);
EXECUTE compared(4);
PREPARE first_of(int) AS SELECT DISTINCT ON (g) g, id FROM ka WHERE id < $1 ORDER BY g, id DESC;
EXECUTE first_of(14);
EXECUTE first_of(3);
PREPARE lateral_rows(int) AS SELECT kb.g, x.id FROM kb LEFT JOIN LATERAL
    (SELECT id FROM ka WHERE ka.g = kb.g AND ka.id > $1 ORDER BY id LIMIT 2) x ON true ORDER BY 1, 2;
EXECUTE lateral_rows(5);
EXECUTE lateral_rows(990);
PREPARE anti(int) AS SELECT kb.g FROM kb LEFT JOIN ka ON ka.g = kb.g AND ka.id > $1 WHERE ka.id IS NULL ORDER BY 1;
EXECUTE anti(900);
EXECUTE anti(995);
-- Loops that leave in the middle: of groups, of a sort, of a join.
CREATE FUNCTION ks_part(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; out text := '';
BEGIN
    FOR r IN SELECT g, count(*) c, sum(v) s FROM ka WHERE id < k * 37 GROUP BY g HAVING g % 3 = k % 3 ORDER BY g LOOP
        out := out || ' ' || r.g || ':' || r.c || ':' || r.s;
        EXIT WHEN r.g >= k % 10;
    END LOOP;
    FOR r IN SELECT a.id, b.t, (SELECT count(*) FROM ka x WHERE x.g = b.g AND x.id < k) c FROM ka a JOIN kb b USING (g)
            WHERE a.id >= k ORDER BY a.v DESC LIMIT k + 3 LOOP
        out := out || ' ' || r.id || ':' || r.t || ':' || r.c;
        EXIT WHEN r.id % 4 = k % 4;
    END LOOP;
    RETURN out;
END $$;
SELECT k, ks_part(k) FROM generate_series(1, 12) k;
SET enable_sort = off;
CREATE FUNCTION ks_hashed(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; n int := 0;
BEGIN
    FOR r IN SELECT g, count(*) c FROM ka WHERE id < k * 10 GROUP BY g LOOP
        n := n + r.c;
        EXIT WHEN n >= k * 3;
    END LOOP;
    RETURN n;
END $$;
SELECT k, ks_hashed(k) FROM generate_series(1, 8) k;
RESET enable_sort;
DROP FOREIGN TABLE ka, kb;
DROP FUNCTION ks_part, ks_hashed;

-- Suspended in the middle: a cursor sees its snapshot, holds its tables, and the same plan runs beside it.
BEGIN;
DECLARE c CURSOR FOR SELECT s.id, d.name FROM ks s JOIN kd d USING (grp) WHERE s.id < 6 ORDER BY s.id;
FETCH 2 FROM c;
INSERT INTO ks VALUES (0, 1, 1, 'late');
UPDATE kd SET name = 'renamed';
EXECUTE pair(1);
SAVEPOINT s;
ALTER TABLE ks DROP COLUMN t;
ROLLBACK TO s;
TRUNCATE kd;
ROLLBACK TO s;
DECLARE d CURSOR FOR SELECT s.id, d.name FROM ks s JOIN kd d USING (grp) WHERE s.id < 6 ORDER BY s.id;
FETCH 2 FROM d;
FETCH ALL FROM c;
MOVE BACKWARD 1 FROM c;
FETCH ALL FROM d;
ROLLBACK;
BEGIN;
SAVEPOINT a;
DECLARE f CURSOR FOR SELECT 10 / (s.id - 2) AS x FROM ks s JOIN kd d USING (grp) WHERE s.id < 6 ORDER BY s.id;
RELEASE a;
SAVEPOINT b;
FETCH 1 FROM f;
ROLLBACK TO b;
FETCH 1 FROM f;
ROLLBACK TO b;
FETCH 1 FROM f;
COMMIT;
BEGIN;
DECLARE g CURSOR FOR SELECT id FROM ks ORDER BY t, id;
FETCH 2 FROM g;
CLOSE g;
DECLARE h CURSOR WITH HOLD FOR SELECT grp, count(*) FROM ks GROUP BY grp ORDER BY grp;
FETCH 1 FROM h;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
BEGIN;
DECLARE u CURSOR FOR SELECT s.id FROM ks s JOIN kd d USING (grp) WHERE s.id = 3;
FETCH 1 FROM u;
UPDATE ks SET n = 0 WHERE CURRENT OF u;
ROLLBACK;

-- What failed under a savepoint younger than itself had no End. What gets the memory of its query later is not taken for it.
CREATE FUNCTION ks_alias() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c refcursor; x int; failed int := 0;
BEGIN
    FOR i IN 1 .. 4 LOOP
        OPEN c FOR SELECT 10 / (s.id - 2) AS x FROM ks s JOIN kd d USING (grp) WHERE s.id < 6 ORDER BY s.id;
        FETCH c INTO x;
        BEGIN
            IF i = 1 THEN FETCH c INTO x; END IF;
        EXCEPTION WHEN division_by_zero THEN failed := failed + 1;
        END;
        CLOSE c;
    END LOOP;
    RETURN failed;
END $$;
SELECT ks_alias();
SELECT ks_alias();
-- A SQL function that gives its rows one by one runs on after the savepoint it began under is gone, as long as its cursor does.
CREATE FUNCTION ks_slow(int) RETURNS SETOF text LANGUAGE sql AS
    $$ SELECT d.name FROM ks s JOIN kd d USING (grp) WHERE s.id >= $1 ORDER BY s.id $$;
BEGIN;
DECLARE c CURSOR FOR SELECT ks_slow(57);
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
SELECT ks_slow(59);
CLOSE c;
SELECT ks_slow(59);
COMMIT;
BEGIN;
DECLARE c CURSOR FOR SELECT ks_slow(57);
FETCH 1 FROM c;
SAVEPOINT s;
FETCH 1 FROM c;
SELECT ks_slow(59);
ROLLBACK TO s;
FETCH 1 FROM c;
CLOSE c;
COMMIT;
DROP FUNCTION ks_alias, ks_slow;

-- A subplan that two nodes, or two parts of one, refer to: its tables are opened and closed once. If both hash it, core runs the plan.
CREATE FUNCTION ks_trees() RETURNS bigint LANGUAGE sql AS
    $$ SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'mot kept plan' $$;
PREPARE by_subplan AS SELECT d.grp, s.id FROM kd d, ks s WHERE s.id = (SELECT min(x.next) FROM kd x WHERE x.grp = d.grp);
EXECUTE by_subplan;
EXECUTE by_subplan;
DO $$ BEGIN
    PERFORM 1 FROM kd d, ks s WHERE s.id = (SELECT min(x.next) FROM kd x WHERE x.grp = d.grp);
    ALTER FOREIGN TABLE kd ADD COLUMN extra int;
    ALTER FOREIGN TABLE kd DROP COLUMN extra;
END $$;
SET enable_memoize = off;
PREPARE two_hashed(int) AS SELECT count(*) FROM ks a, kd b WHERE (a.grp IN (SELECT next FROM kd WHERE grp >= $1) AND b.next = 3)
    OR (a.grp NOT IN (SELECT grp FROM kd WHERE grp < $1) AND b.next = 4);
SELECT line FROM pg_temp.explained('EXECUTE two_hashed(1)') line WHERE line !~ 'Filter';
SELECT ks_trees() AS trees \gset
EXECUTE two_hashed(1);
EXECUTE two_hashed(4);
EXECUTE two_hashed(2);
EXECUTE two_hashed(5);
SELECT ks_trees() - :trees AS more;
RESET enable_memoize;

-- A function that runs the statement it is called from.
CREATE FUNCTION ks_depth(k int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r record; total bigint := 0;
BEGIN
    FOR r IN SELECT s.id, count(*) OVER () AS c, d.name FROM ks s JOIN kd d USING (grp) WHERE s.id <= k ORDER BY s.id LOOP
        total := total + r.id;
    END LOOP;
    FOR r IN SELECT s.id, d.name FROM ks s JOIN kd d USING (grp) WHERE s.id <= k ORDER BY s.t, s.id LOOP
        total := total + r.id;
        IF r.id > 1 THEN total := total + ks_depth(r.id - 1); END IF;
    END LOOP;
    RETURN total;
END $$;
SELECT ks_depth(4);
SELECT ks_depth(4);
CREATE FUNCTION ks_of(int) RETURNS SETOF text LANGUAGE sql AS
    $$ SELECT d.name FROM ks s JOIN kd d USING (grp) WHERE s.id >= $1 ORDER BY s.id $$;
SELECT ks_of(58) LIMIT 2;
SELECT * FROM ks_of(58);

-- Rights are asked for at every execution, of every table, and of functions.
CREATE ROLE ks_reader;
GRANT SELECT ON ks, kd TO ks_reader;
SET ROLE ks_reader;
EXECUTE pair(1);
RESET ROLE;
REVOKE SELECT ON kd FROM ks_reader;
SET ROLE ks_reader;
EXECUTE pair(1);
EXECUTE agg(1, 2);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION string_agg(text, text) FROM PUBLIC;
SET ROLE ks_reader;
EXECUTE agg(1, 2);
RESET ROLE;
GRANT EXECUTE ON FUNCTION string_agg(text, text) TO PUBLIC;
UPDATE pg_proc SET proacl = NULL WHERE oid = 'string_agg(text, text)'::regprocedure;
DROP OWNED BY ks_reader;
DROP ROLE ks_reader;

-- The tables change between two executions.
BEGIN;
TRUNCATE kd;
EXECUTE pair(1);
INSERT INTO kd VALUES (2, 'only', 3);
EXECUTE pair(1);
EXECUTE scalar;
ROLLBACK;
EXECUTE pair(1);
ALTER TABLE kd ADD COLUMN extra int DEFAULT 7;
EXECUTE pair(1);
PREPARE all_of(int) AS SELECT * FROM ks s JOIN kd d USING (grp) WHERE s.id = $1;
EXECUTE all_of(1);
EXECUTE all_of(2);
ALTER TABLE kd DROP COLUMN extra;
EXECUTE all_of(1);
EXECUTE scalar;
DROP INDEX ks_grp_n_idx;
EXECUTE scalar;
CREATE FUNCTION ks_late(k int) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN IF k = 3 THEN ALTER TABLE kd ADD COLUMN late int DEFAULT 3; END IF; RETURN k; END $$;
CREATE FUNCTION ks_count() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) + sum(d.next) FROM ks s JOIN kd d USING (grp) WHERE id < 9 $$;
SELECT ks_count(), ks_late(k) FROM generate_series(1, 5) k;

-- What is of one execution only does not last: the time, the user, a sequence, random values.
CREATE SEQUENCE ks_seq;
PREPARE drawn AS SELECT count(*), max(nextval('ks_seq')) FROM ks s JOIN kd d USING (grp) WHERE s.id <= 3;
EXECUTE drawn;
EXECUTE drawn;
PREPARE moments AS SELECT bool_and(statement_timestamp() = $1), min(current_user) = current_user FROM ks s JOIN kd d USING (grp);
BEGIN;
EXECUTE moments(statement_timestamp());
SELECT pg_sleep(0.01);
EXECUTE moments(statement_timestamp());
COMMIT;

-- Nothing grows: memory, and what a plan that sorts much leaves.
CREATE FUNCTION ks_many() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE total bigint := 0; x bigint;
BEGIN
    FOR k IN 1 .. 3000 LOOP
        SELECT count(DISTINCT s.t) + sum(length(d.name)) INTO x FROM ks s JOIN kd d USING (grp) WHERE s.id > k % 50;
        total := total + x;
    END LOOP;
    RETURN total;
END $$;
SELECT ks_many();
SELECT coalesce(max(total_bytes), 0) < 600000 AS little FROM pg_backend_memory_contexts WHERE name = 'ExecutorState' AND level > 1;
SET work_mem = '64kB';
INSERT INTO ks SELECT i, 1, i, repeat('x', 100) || i FROM generate_series(1001, 4000) i;
PREPARE large AS SELECT count(*), max(t) FROM (SELECT DISTINCT t FROM ks s JOIN kd d USING (grp) ORDER BY t) x;
EXECUTE large;
EXECUTE large;
SET enable_sort = off;
PREPARE many_groups AS SELECT count(*) FROM (SELECT t, count(*) FROM ks s JOIN kd d USING (grp) GROUP BY t) x;
EXECUTE many_groups;
EXECUTE many_groups;
-- Files of subqueries are closed, too.
SET hash_mem_multiplier = 1;
PREPARE groups_below AS SELECT grp, (SELECT count(*) FROM (SELECT t, count(*) FROM ks GROUP BY t) x) FROM kd ORDER BY grp;
EXECUTE groups_below;
EXECUTE groups_below;
PREPARE groups_hashed AS SELECT count(*) FROM kd WHERE name NOT IN (SELECT t FROM ks WHERE t IS NOT NULL GROUP BY t);
EXECUTE groups_hashed;
EXECUTE groups_hashed;
-- A plan whose tree was too large once or twice has another chance; not one where that is so each time.
PREPARE varied(int) AS SELECT count(*) FROM (SELECT t, count(*) FROM ks WHERE id <= $1 GROUP BY t) x;
SELECT ks_trees() AS trees \gset
EXECUTE varied(4000);
EXECUTE varied(4000);
SELECT ks_trees() - :trees AS more;
EXECUTE varied(10);
SELECT ks_trees() - :trees AS more;
EXECUTE varied(4000);
EXECUTE varied(4000);
EXECUTE varied(10);
SELECT ks_trees() - :trees AS more;
-- Hash tables are as large as the settings say now.
CREATE FUNCTION ks_files(k int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE c refcursor; x text; files bigint;
BEGIN
    OPEN c FOR SELECT t, count(*) FROM ks WHERE id <= k GROUP BY t;
    FETCH c INTO x;
    SELECT count(*) INTO files FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp' || pg_backend_pid() || '.%';
    CLOSE c;
    RETURN files;
END $$;
SET work_mem = '64MB';
SELECT ks_files(1);
SET work_mem = '64kB';
SELECT ks_files(4000) > 0 AS spills;
SET work_mem = '64MB';
SELECT ks_files(4000);
RESET hash_mem_multiplier;
RESET enable_sort;
RESET work_mem;
-- Trees of failed executions go with the (sub)transaction.
CREATE FUNCTION ks_fail() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE x bigint; before bigint := ks_trees();
BEGIN
    BEGIN
        SELECT max(y.x) INTO x FROM (SELECT t, 1 / (count(*) - 1) AS x FROM ks GROUP BY t ORDER BY t) y;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    RETURN ks_trees() - before;
END $$;
SELECT ks_trees() AS trees \gset
SELECT ks_fail();
SELECT t, 1 / (count(*) - 1) FROM ks GROUP BY t ORDER BY t;
SELECT ks_trees() - :trees AS more;
-- All trees together have a bound.
DO $$
DECLARE n bigint;
BEGIN
    FOR i IN 1 .. 150 LOOP
        EXECUTE format('SELECT count(*) FROM (SELECT s.t, count(DISTINCT s.n), d.name, %s FROM ks s JOIN kd d USING (grp)
            WHERE s.id < 60 GROUP BY s.t, d.name ORDER BY s.t LIMIT 3) x', i) INTO n;
    END LOOP;
END $$;
SELECT ks_trees() BETWEEN 10 AND 100 AS bounded;
EXECUTE pair(1);

-- EXPLAIN is the general path's.
SELECT pg_temp.explained('EXECUTE pair(1)');
SELECT pg_temp.explained('EXECUTE pair(1)', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
EXECUTE pair(1);
SELECT rows FROM mot.check('ks');
DROP FOREIGN TABLE ks, kd;
DROP SEQUENCE ks_seq;
DROP FUNCTION ks_errors, ks_depth, ks_of, ks_late, ks_count, ks_many, ks_trees, ks_files, ks_fail;
