-- Pages cost nothing in memory: plans follow from rows, entries and conditions.
CREATE TABLE queue (w int, d int, o int, PRIMARY KEY (w, d, o)) USING mot;
INSERT INTO queue SELECT w, d, o FROM generate_series(1, 2) w, generate_series(1, 10) d, generate_series(1, 900) o;
CREATE TABLE twenty (w int, d int, next int, PRIMARY KEY (w, d)) USING mot;
INSERT INTO twenty SELECT w, d, 0 FROM generate_series(1, 2) w, generate_series(1, 10) d;
CREATE TABLE fresh (id int PRIMARY KEY, v int) USING mot;

-- The first of many by an index, rather than all of them sorted; and by a key, however few the rows.
ANALYZE queue, twenty;
EXPLAIN (COSTS OFF) SELECT o FROM queue WHERE w = 1 AND d = 2 ORDER BY o;
EXPLAIN (COSTS OFF) SELECT next FROM twenty WHERE w = 1 AND d = 2;
EXPLAIN (COSTS OFF) SELECT next FROM twenty WHERE w = 1 AND d = 2 FOR UPDATE;
EXPLAIN (COSTS OFF) UPDATE twenty SET next = next + 1 WHERE w = 1 AND d = 2;
EXPLAIN (COSTS OFF) SELECT q.o FROM twenty t JOIN queue q ON q.w = t.w AND q.d = t.d AND q.o >= t.next WHERE t.w = 1 AND t.d = 3;

-- Most rows are read as they lie.
EXPLAIN (COSTS OFF) SELECT * FROM queue WHERE w = 1;
EXPLAIN (COSTS OFF) SELECT * FROM queue ORDER BY w, d, o;

-- A plan made while a table is empty reads by keys, and is kept when it has grown.
EXPLAIN (COSTS OFF) SELECT v FROM fresh WHERE id = 1;
SET plan_cache_mode = force_generic_plan;
PREPARE by_key(int) AS SELECT v FROM fresh WHERE id = $1;
EXECUTE by_key(1);
INSERT INTO fresh SELECT n, n FROM generate_series(1, 1000) n;
EXPLAIN (COSTS OFF) EXECUTE by_key(1);
RESET plan_cache_mode;

-- Parallel workers go by the table's true size, or by what its owner says.
SET min_parallel_table_scan_size = '64kB';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT count(*) FROM queue;
ALTER TABLE queue SET (parallel_workers = 3);
SET max_parallel_workers_per_gather = 4;
EXPLAIN (COSTS OFF) SELECT count(*) FROM queue;
ALTER TABLE queue SET (parallel_workers = 0);
EXPLAIN (COSTS OFF) SELECT count(*) FROM queue;
RESET min_parallel_table_scan_size;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET max_parallel_workers_per_gather;

-- A sample's share is one of pages.
SELECT count(*) BETWEEN 1 AND 17999 AS is_a_share FROM queue TABLESAMPLE SYSTEM (50) REPEATABLE (1);

DROP TABLE queue, twenty, fresh;
