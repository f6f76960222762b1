-- The forms of plan that a btree has, on a MOT table beside a heap table of the same rows.
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE item (id int PRIMARY KEY, a int NOT NULL, b int, flag bool NOT NULL, n int, u text COLLATE "C" NOT NULL, s text) USING mot;
CREATE TABLE item_heap (LIKE item INCLUDING ALL) USING heap;
CREATE TABLE few (id int PRIMARY KEY, k int NOT NULL) USING mot;
CREATE TABLE few_heap (LIKE few INCLUDING ALL) USING heap;
INSERT INTO item_heap SELECT i, i % 100, i * 7 % 97, i % 100 = 0, CASE WHEN i % 50 = 0 THEN i % 70 END, 'key-' || lpad((i * 31 % 5000)::text, 5, '0'), repeat('s', 40)
    FROM generate_series(1, 20000) i;
INSERT INTO item SELECT * FROM item_heap;
INSERT INTO few_heap SELECT i, i * 997 % 20000 FROM generate_series(1, 50) i;
INSERT INTO few SELECT * FROM few_heap;
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY '{item,item_heap}'::text[] LOOP
        EXECUTE format('CREATE INDEX %1$s_ab ON %1$s (a, b); CREATE INDEX %1$s_b ON %1$s (b); CREATE INDEX %1$s_n ON %1$s (n); CREATE INDEX %1$s_u ON %1$s (u); CREATE INDEX %1$s_flag ON %1$s (flag, id)', t);
    END LOOP;
END $$;
ANALYZE item, item_heap, few, few_heap;

-- The nodes of a plan and their conditions, without what differs between major versions.
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
        CONTINUE WHEN line ~ 'MOT Row Comparison|InitPlan|-> *Result$|^ *Result$';
        RETURN NEXT regexp_replace(line, '^ *(-> *)?', '');
    END LOOP;
END $$;
-- Shows the plan on the MOT table, and compares its rows with the heap table's, in their order.
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE mot text; heap text;
BEGIN
    RETURN QUERY SELECT explained(query);
    EXECUTE format('SELECT string_agg(q::text, '' '') FROM (%s) q', query) INTO mot;
    EXECUTE format('SELECT string_agg(q::text, '' '') FROM (%s) q', regexp_replace(query, '\m(item|few)\M', '\1_heap', 'g')) INTO heap;
    IF mot IS DISTINCT FROM heap THEN
        RETURN NEXT format('DIFFERS: %s instead of %s', mot, heap);
    END IF;
END $$;

-- OR of several indexes, AND of two.
SELECT plan('SELECT id FROM item WHERE id = 5 OR b = 7 ORDER BY id');
SET enable_indexscan = off;
SELECT plan('SELECT count(*) FROM item WHERE b = 7 AND u BETWEEN ''key-00100'' AND ''key-00300''');
SELECT plan('SELECT count(*) FROM item WHERE b < 10 AND u < ''key-00500''');
RESET enable_indexscan;
SELECT plan('SELECT count(*) FROM item WHERE (a = 7 AND b < 20) OR (n < 5 AND b = 3)');

-- Comparisons of rows: ends of a range, in both directions, below a bitmap, by outer rows.
SELECT plan('SELECT a, b FROM item WHERE (a, b) > (50, 5) ORDER BY a, b LIMIT 5');
SELECT plan('SELECT a, b FROM item WHERE (a, b) < (50, 5) ORDER BY a DESC, b DESC LIMIT 5');
SELECT plan('SELECT a, b, id FROM item WHERE (a, b, id) >= (50, 5, 9000) ORDER BY a, b, id LIMIT 5');
SELECT plan('SELECT count(*) FROM item WHERE (a, b) >= (99, 90) OR (a, b) < (0, 3)');
SELECT plan('SELECT s.id, q.* FROM few s CROSS JOIN LATERAL (SELECT a, b FROM item WHERE (a, b) > (s.id, 90) ORDER BY a, b LIMIT 1) q WHERE s.id < 4 ORDER BY s.id');
SELECT plan('SELECT flag, id FROM item WHERE (flag, id) > (true, 19000) ORDER BY flag, id');
SELECT plan('SELECT a, a AS again, 1 AS one FROM item WHERE (a, b) > (99, 94) UNION ALL SELECT b, b, 2 FROM item WHERE (a, b) > (99, 95)');
SELECT plan('SELECT count(*) FROM item WHERE (a, b) > (99, NULL)');
-- Of columns in another order than the index's the first one bounds the scan.
SELECT plan('SELECT count(*) FROM item WHERE (b, a) > (95, 90)');
PREPARE page(int, int) AS SELECT a, b FROM item WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 2;
SET plan_cache_mode = force_generic_plan;
SELECT explained('EXECUTE page(50, 5)');
EXECUTE page(50, 5);
EXECUTE page(99, 95);
EXECUTE page(99, 96);
EXECUTE page(99, NULL);
RESET plan_cache_mode;
-- A cursor goes back and forth, and stands on rows that are changed.
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM item WHERE (a, b) >= (99, 90) ORDER BY a, b;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 2 FROM c;
CLOSE c;
SET LOCAL enable_sort = off;
DECLARE c CURSOR FOR SELECT id FROM item WHERE (a, b) >= (99, 96);
FETCH 1 FROM c;
UPDATE item SET s = 'current' WHERE CURRENT OF c RETURNING id, s;
ROLLBACK;
BEGIN;
SELECT explained('UPDATE item SET s = ''row'' WHERE (a, b) > (99, 95)');
UPDATE item SET s = 'row' WHERE (a, b) > (99, 95) RETURNING id, a, b, s;
DELETE FROM item WHERE (a, b) > (99, 94) RETURNING a, b;
ROLLBACK;
SELECT explained('SELECT id FROM item WHERE (a, b) > (99, 95) ORDER BY a, b FOR UPDATE');

-- Prefixes.
SELECT plan('SELECT id FROM item WHERE u LIKE ''key-0012%'' ORDER BY id');
SELECT plan('SELECT id FROM item WHERE u ~ ''^key-0012[0-3]$'' ORDER BY id');

-- Lists, with the order of the index.
SELECT plan('SELECT a, b FROM item WHERE a IN (90, 3, 50) ORDER BY a, b LIMIT 5');
SELECT plan('SELECT a, b FROM item WHERE a = 7 AND b IN (90, 5, 33, 5) ORDER BY b LIMIT 5');
SELECT plan('SELECT a, b FROM item WHERE a = 7 AND b IN (90, 5, 33, 5) ORDER BY b DESC LIMIT 5');
SELECT plan('SELECT a, b FROM item WHERE a IN (7, 3) AND b = ANY (ARRAY[90, 5, NULL, 33]) ORDER BY a, b');
SELECT plan('SELECT flag, id FROM item WHERE flag AND id IN (100, 9000, 300, 301) ORDER BY id');

-- The first column left open: its values are passed over, if they are few.
CREATE INDEX item_flag_n ON item (flag DESC, n, b);
CREATE INDEX item_id_b ON item (id, b);
SELECT plan('SELECT id FROM item WHERE n = 30 AND b IN (3, 5, 90) ORDER BY flag DESC, n, b LIMIT 3');
DROP INDEX item_n;
SELECT plan('SELECT count(*), min(id), max(id) FROM item WHERE n = 30');
SELECT plan('SELECT flag, n, b FROM item WHERE n BETWEEN 20 AND 40 ORDER BY flag DESC, n, b LIMIT 5');
SELECT plan('SELECT flag, n, b FROM item WHERE n BETWEEN 20 AND 40 ORDER BY flag, n DESC, b DESC LIMIT 5');
SELECT plan('SELECT count(*) FROM item WHERE n IS NOT NULL');
SELECT plan('SELECT count(*) FROM item WHERE n = 30 OR id = 9');
PREPARE by_n(int) AS SELECT count(*) FROM item WHERE n = $1;
SET plan_cache_mode = force_generic_plan;
SELECT explained('EXECUTE by_n(30)');
EXECUTE by_n(30);
EXECUTE by_n(NULL);
EXECUTE by_n(31);
RESET plan_cache_mode;
DROP INDEX item_b;
SELECT plan('SELECT count(*) FROM item WHERE b = 7');
DROP INDEX item_ab;
-- By an index whose first column has a value for each row all rows would be looked at.
SELECT plan('SELECT count(*) FROM item WHERE b = 7');
CREATE INDEX item_ab ON item (a, b);
CREATE INDEX item_b ON item (b);
CREATE INDEX item_n ON item (n);
DROP INDEX item_flag_n, item_id_b;

-- DISTINCT, min and max, more columns than the index has, backward.
SELECT plan('SELECT DISTINCT a, b FROM item WHERE a < 1 ORDER BY a, b');
SELECT plan('SELECT min(b), max(b) FROM item WHERE a = 7');
SELECT plan('SELECT min(n), max(n) FROM item');
SELECT plan('SELECT a, id FROM item ORDER BY a, id LIMIT 3');
SELECT plan('SELECT id, u FROM item ORDER BY u DESC, id LIMIT 3');

-- NULL, and truth.
SELECT plan('SELECT id FROM item WHERE n IS NOT NULL AND n < 3 ORDER BY id LIMIT 5');
SELECT plan('SELECT count(*) FROM item WHERE n IS NOT NULL');
SELECT plan('SELECT n, id FROM item ORDER BY n NULLS LAST, id LIMIT 3');
SELECT plan('SELECT count(*) FROM item WHERE flag');
SELECT plan('SELECT id FROM item WHERE flag ORDER BY id DESC LIMIT 3');

-- The inner side of loops.
SELECT plan('SELECT i.id, i.b FROM few s JOIN item i ON i.id = s.k ORDER BY i.id LIMIT 5');
SELECT plan('SELECT count(*) FROM few s JOIN item i ON i.a = s.id AND i.b < 5');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT plan('SELECT count(s.k) FROM item i JOIN few s ON s.id = i.a WHERE i.b < 20');
RESET enable_hashjoin;
RESET enable_mergejoin;

DROP TABLE item, item_heap, few, few_heap;
DROP FUNCTION plan;
DROP FUNCTION explained;
