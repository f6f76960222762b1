-- Bitmap scans: conditions joined by OR, and AND of two indexes.
CREATE TABLE mail (id int PRIMARY KEY, k int, email text COLLATE "C", c text) USING mot;
CREATE TABLE mail_heap (LIKE mail INCLUDING ALL) USING heap;
CREATE INDEX mail_k ON mail (k);
CREATE INDEX mail_email ON mail (email);
INSERT INTO mail SELECT i, i * 7 % 5000, 'm' || i % 2500 || '@x', repeat('x', 50) FROM generate_series(1, 20000) i;
INSERT INTO mail_heap SELECT * FROM mail;
ANALYZE mail, mail_heap;

EXPLAIN (COSTS OFF) SELECT id FROM mail WHERE id = 5 OR email = 'm77@x';
SELECT id FROM mail WHERE id = 5 OR email = 'm77@x' ORDER BY id;
EXPLAIN (COSTS OFF) SELECT count(*) FROM mail WHERE k BETWEEN 10 AND 15 OR k BETWEEN 1000 AND 1005;
SELECT count(*), sum(id) FROM mail WHERE k BETWEEN 10 AND 15 OR k BETWEEN 1000 AND 1005;
-- Keyset pagination written out.
EXPLAIN (COSTS OFF) SELECT id FROM mail WHERE id > 19990 OR (id = 19990 AND k > 3);
SELECT id FROM mail WHERE id > 19990 OR (id = 19990 AND k > 3) ORDER BY id;

-- What EXPLAIN ANALYZE counts.
CREATE FUNCTION counted(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) ' || statement LOOP
        CONTINUE WHEN line ~ 'Index Searches';
        RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
    END LOOP;
END $$;
SELECT counted('SELECT id FROM mail WHERE id IN (1, 5, 9) OR k = 3');

-- Rows that change between a query's index and its table, in the transaction itself and beside it.
BEGIN;
UPDATE mail SET k = 3 WHERE id = 100;
UPDATE mail SET k = 4 WHERE k = 3 AND id <> 100;
DELETE FROM mail WHERE id = 5;
INSERT INTO mail VALUES (5, 9999, 'new', 'x');
EXPLAIN (COSTS OFF) SELECT id, k FROM mail WHERE id = 5 OR k = 3;
SELECT id, k FROM mail WHERE id = 5 OR k = 3 ORDER BY id;
SAVEPOINT s;
DELETE FROM mail WHERE id = 5 OR k = 3;
SELECT id, k FROM mail WHERE id = 5 OR k = 3 ORDER BY id;
ROLLBACK TO s;
SELECT id, k FROM mail WHERE id = 5 OR k = 3 ORDER BY id FOR UPDATE;
ROLLBACK;
SELECT id, k FROM mail WHERE id = 5 OR k = 3 ORDER BY id;

-- UPDATE and DELETE by such conditions.
BEGIN;
EXPLAIN (COSTS OFF) UPDATE mail SET c = 'y' WHERE id = 7 OR email = 'm8@x';
UPDATE mail SET c = 'y' WHERE id = 7 OR email = 'm8@x' RETURNING id;
DELETE FROM mail WHERE id = 7 OR email = 'm8@x';
SELECT count(*) FROM mail;
ROLLBACK;

-- Alone, forced: all kinds of conditions, each with the same answer as a heap table.
SET enable_indexscan = off;
SET enable_seqscan = off;
CREATE FUNCTION judge(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text;
    ours text;
    theirs text;
    uses_bitmap bool := false;
BEGIN
    FOR plan IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT * FROM mail WHERE ' || condition LOOP
        uses_bitmap := uses_bitmap OR plan LIKE '%Bitmap Heap Scan on mail%';
    END LOOP;
    EXECUTE 'SELECT count(*) || '' '' || coalesce(sum(hashtext(m::text)::bigint), 0) FROM mail m WHERE ' || condition INTO ours;
    EXECUTE 'SELECT count(*) || '' '' || coalesce(sum(hashtext(m::text)::bigint), 0) FROM mail_heap m WHERE ' || condition INTO theirs;
    RETURN format('%s bitmap %s, equal %s, %s rows', condition, uses_bitmap, ours = theirs, split_part(ours, ' ', 1));
END $$;
SELECT judge(condition) FROM unnest(ARRAY[
  'k = 3', 'k < 30 AND email > ''m2''', 'k = ANY (ARRAY[1, 2, 3, NULL])', 'k IS NULL', 'k IS NOT NULL',
  'id BETWEEN 5000 AND 15000', 'k > 4990 OR k IS NULL OR email = ''m1@x''', '(k = 1 OR k = 2) AND (email = ''m1@x'' OR id < 3000)',
  'id > 100000']) condition;
-- A bitmap that is short of memory keeps whole pages, whose rows are tested again.
CREATE TABLE many (id int PRIMARY KEY, k int) USING mot;
CREATE INDEX ON many (k);
INSERT INTO many SELECT i, i % 4 FROM generate_series(1, 500000) i;
DELETE FROM many WHERE id % 10 = 0;
ANALYZE many;
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 0;
DO $$
DECLARE line text; keeps_pages bool := false;
BEGIN
    FOR line IN EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*) FROM many WHERE k = 2 OR id < 3000 LOOP
        keeps_pages := keeps_pages OR line ~ 'Heap Blocks: .*lossy=\d';
    END LOOP;
    RAISE NOTICE 'keeps whole pages: %', keeps_pages;
END $$;
SELECT count(*), sum(id::bigint) FROM many WHERE k = 2 OR id < 3000;
SELECT count(*), sum(i::bigint) FROM generate_series(1, 500000) i WHERE i % 10 <> 0 AND (i % 4 = 2 OR i < 3000);
RESET max_parallel_workers_per_gather;
DROP TABLE many;
-- Parallel workers share one.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
ALTER TABLE mail SET (parallel_workers = 2);
EXPLAIN (COSTS OFF) SELECT count(*) FROM mail WHERE id BETWEEN 5000 AND 15000 OR k < 2000;
SELECT count(*), sum(id) FROM mail WHERE id BETWEEN 5000 AND 15000 OR k < 2000;
SELECT count(*), sum(id) FROM mail_heap WHERE id BETWEEN 5000 AND 15000 OR k < 2000;
RESET ALL;

-- For each row of a join, with parameters; and a cursor across a savepoint.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM generate_series(1, 50) g JOIN mail m ON m.id = g OR m.k = g;
SELECT count(*), sum(m.id) FROM generate_series(1, 50) g JOIN mail m ON m.id = g OR m.k = g;
SELECT count(*), sum(m.id) FROM generate_series(1, 50) g JOIN mail_heap m ON m.id = g OR m.k = g;
RESET ALL;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM mail WHERE id = 5 OR k = 3;
FETCH 1 FROM c;
SAVEPOINT s;
DELETE FROM mail WHERE k = 3;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 1 FROM c;
UPDATE mail SET c = 'current' WHERE CURRENT OF c RETURNING id;
FETCH ALL FROM c;
COMMIT;

-- SERIALIZABLE transactions read by them, too.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT id FROM mail WHERE id = 5 OR k = 3 ORDER BY id;
COMMIT;
SELECT * FROM mot.check('mail');
DROP FUNCTION judge, counted;
DROP TABLE mail, mail_heap;
