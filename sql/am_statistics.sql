-- Tables of the access method in core's cumulative statistics: each counter beside a heap table's, after the same statements.
\set VERBOSITY terse
CREATE TABLE am_counted (id int PRIMARY KEY, v int, t text) USING mot;
CREATE TABLE am_counted_heap (id int PRIMARY KEY, v int, t text) USING heap WITH (autovacuum_enabled = off);
-- Runs a statement on both tables: what it counts on heap, and whether MOT counts the same.
CREATE FUNCTION am_counts(statement text) RETURNS TABLE (seq_scan bigint, seq_tup_read bigint, idx_scan bigint, idx_tup_fetch bigint, ins bigint, upd bigint, del bigint, equal boolean)
LANGUAGE plpgsql AS $$
DECLARE before_heap record; before_mot record; after_heap record; after_mot record;
BEGIN
  SELECT * INTO before_heap FROM pg_stat_xact_user_tables WHERE relname = 'am_counted_heap';
  SELECT * INTO before_mot FROM pg_stat_xact_user_tables WHERE relname = 'am_counted';
  EXECUTE replace(statement, '@', 'am_counted_heap');
  EXECUTE replace(statement, '@', 'am_counted');
  SELECT * INTO after_heap FROM pg_stat_xact_user_tables WHERE relname = 'am_counted_heap';
  SELECT * INTO after_mot FROM pg_stat_xact_user_tables WHERE relname = 'am_counted';
  seq_scan := after_heap.seq_scan - before_heap.seq_scan;
  seq_tup_read := after_heap.seq_tup_read - before_heap.seq_tup_read;
  idx_scan := after_heap.idx_scan - before_heap.idx_scan;
  idx_tup_fetch := after_heap.idx_tup_fetch - before_heap.idx_tup_fetch;
  ins := after_heap.n_tup_ins - before_heap.n_tup_ins;
  upd := after_heap.n_tup_upd - before_heap.n_tup_upd;
  del := after_heap.n_tup_del - before_heap.n_tup_del;
  equal := (seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, ins, upd, del) = (after_mot.seq_scan - before_mot.seq_scan, after_mot.seq_tup_read - before_mot.seq_tup_read,
    after_mot.idx_scan - before_mot.idx_scan, after_mot.idx_tup_fetch - before_mot.idx_tup_fetch,
    after_mot.n_tup_ins - before_mot.n_tup_ins, after_mot.n_tup_upd - before_mot.n_tup_upd, after_mot.n_tup_del - before_mot.n_tup_del);
  IF NOT equal THEN
    RAISE NOTICE 'MOT: % %', before_mot, after_mot;
  END IF;
  RETURN NEXT;
END $$;
BEGIN;
SELECT * FROM am_counts($$INSERT INTO @ SELECT g, g, 'row' FROM generate_series(1, 1000) g$$);
COMMIT;
ANALYZE am_counted, am_counted_heap;
BEGIN;
SET LOCAL enable_bitmapscan = off;
SET LOCAL enable_indexonlyscan = off;
SELECT * FROM am_counts($$SELECT count(v) FROM @$$);
SELECT * FROM am_counts($$SELECT v FROM @ LIMIT 10$$);
SELECT * FROM am_counts($$SELECT v FROM @ WHERE id = 7$$);
SELECT * FROM am_counts($$UPDATE @ SET v = v + 1 WHERE id < 11$$);
SELECT * FROM am_counts($$DELETE FROM @ WHERE id BETWEEN 101 AND 110$$);
SELECT * FROM am_counts($$INSERT INTO @ VALUES (1, 0, '') ON CONFLICT (id) DO UPDATE SET v = 0$$);
SELECT * FROM am_counts($$SELECT * FROM @ WHERE id BETWEEN 301 AND 305 FOR UPDATE$$);
-- LIMIT 0 begins no scan.
SELECT * FROM am_counts($$SELECT v FROM @ WHERE id = 7 LIMIT 0$$);
SELECT * FROM am_counts($x$DO $do$ BEGIN FOR i IN 1..3 LOOP PERFORM v FROM @ WHERE id = 7 LIMIT 0; END LOOP; END $do$$x$);
-- Each rescan is a scan.
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_memoize = off;
SELECT * FROM am_counts($$SELECT count(b.v) FROM generate_series(1, 20) a JOIN @ b ON b.id = a$$);
SET LOCAL enable_indexscan = off;
SET LOCAL enable_material = off;
SELECT * FROM am_counts($$SELECT (SELECT count(b.v) FROM @ b WHERE b.v > a) FROM generate_series(1, 3) a$$);
SET LOCAL enable_indexscan = on;
-- WHERE CURRENT OF; samples are no scans.
SELECT * FROM am_counts($x$DO $do$ DECLARE c refcursor; BEGIN OPEN c FOR SELECT * FROM @ WHERE id BETWEEN 501 AND 520 ORDER BY id FOR UPDATE; MOVE 3 IN c; UPDATE @ SET v = 0 WHERE CURRENT OF c; CLOSE c; END $do$$x$);
SELECT * FROM am_counts($$SELECT count(*) FROM @ TABLESAMPLE BERNOULLI (100)$$);
ROLLBACK;
DROP FUNCTION am_counts;
DROP TABLE am_counted, am_counted_heap;
-- VACUUM (FREEZE) brings a table as far as it brings a heap table that was vacuumed before it.
CREATE TABLE frozen_heap (a int) USING heap;
CREATE TABLE frozen (a int PRIMARY KEY) USING mot;
INSERT INTO frozen_heap VALUES (1);
INSERT INTO frozen VALUES (1);
UPDATE frozen SET a = 2;
VACUUM (FREEZE) frozen_heap, frozen;
SELECT m.relfrozenxid::text::bigint >= h.relfrozenxid::text::bigint AS is_frozen, m.relminmxid::text::bigint >= h.relminmxid::text::bigint AS has_no_multixacts
    FROM pg_class m, pg_class h WHERE m.relname = 'frozen' AND h.relname = 'frozen_heap';
DELETE FROM frozen;
INSERT INTO frozen_heap VALUES (2);
VACUUM (FREEZE) frozen_heap, frozen;
SELECT m.relfrozenxid::text::bigint >= h.relfrozenxid::text::bigint AS is_frozen FROM pg_class m, pg_class h WHERE m.relname = 'frozen' AND h.relname = 'frozen_heap';
DROP TABLE frozen, frozen_heap;
-- What fails was counted before: the rows of a statement up to the one that has another's key.
CREATE TABLE am_failed (id int PRIMARY KEY, u int, v int CHECK (v > 0)) USING mot;
CREATE TABLE am_failed_heap (id int PRIMARY KEY, u int, v int CHECK (v > 0)) USING heap WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX ON am_failed ((u + 1));
CREATE UNIQUE INDEX ON am_failed_heap ((u + 1));
CREATE FUNCTION am_counts(statement text) RETURNS TABLE (ins bigint, upd bigint, del bigint, equal boolean)
LANGUAGE plpgsql AS $$
DECLARE heap record; mot record; before_heap record; before_mot record;
BEGIN
  SELECT * INTO before_heap FROM pg_stat_xact_user_tables WHERE relname = 'am_failed_heap';
  SELECT * INTO before_mot FROM pg_stat_xact_user_tables WHERE relname = 'am_failed';
  BEGIN EXECUTE replace(statement, '@', 'am_failed_heap'); EXCEPTION WHEN OTHERS THEN NULL; END;
  BEGIN EXECUTE replace(statement, '@', 'am_failed'); EXCEPTION WHEN OTHERS THEN NULL; END;
  SELECT * INTO heap FROM pg_stat_xact_user_tables WHERE relname = 'am_failed_heap';
  SELECT * INTO mot FROM pg_stat_xact_user_tables WHERE relname = 'am_failed';
  ins := heap.n_tup_ins - before_heap.n_tup_ins;
  upd := heap.n_tup_upd - before_heap.n_tup_upd;
  del := heap.n_tup_del - before_heap.n_tup_del;
  equal := (ins, upd, del) = (mot.n_tup_ins - before_mot.n_tup_ins, mot.n_tup_upd - before_mot.n_tup_upd, mot.n_tup_del - before_mot.n_tup_del);
  RETURN NEXT;
END $$;
CREATE FUNCTION am_counts_all(way text) RETURNS TABLE (ran text, ins bigint, upd bigint, del bigint, equal boolean)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('mot.compiled_statements', way, true);
  FOREACH ran IN ARRAY ARRAY[
    'TRUNCATE @', 'INSERT INTO @ SELECT g, g, 1 FROM generate_series(1, 10) g',
    'INSERT INTO @ VALUES (1, 100, 1)', 'INSERT INTO @ VALUES (11, 1, 1)', 'INSERT INTO @ VALUES (11, 11, 0)', 'INSERT INTO @ VALUES (NULL, 11, 1)',
    'INSERT INTO @ VALUES (11, 2147483647, 1)', 'INSERT INTO @ VALUES (21, 21, 1), (22, 22, 1), (1, 23, 1), (24, 24, 1)', 'INSERT INTO @ SELECT g, g, 1 FROM generate_series(15, 1, -1) g',
    'INSERT INTO @ VALUES (1, 100, 1) ON CONFLICT DO NOTHING', 'INSERT INTO @ VALUES (11, 1, 1) ON CONFLICT (id) DO NOTHING', 'INSERT INTO @ VALUES (11, 1, 1) ON CONFLICT (id) DO UPDATE SET v = 2',
    'INSERT INTO @ VALUES (1, 100, 1) ON CONFLICT (id) DO UPDATE SET u = 2', 'INSERT INTO @ VALUES (1, 100, 1) ON CONFLICT (id) DO UPDATE SET v = 0',
    'UPDATE @ SET id = 2 WHERE id = 1', 'UPDATE @ SET u = 2 WHERE id = 1', 'UPDATE @ SET v = 0 WHERE id = 1', 'UPDATE @ SET v = v + 1 WHERE id < 5', 'UPDATE @ SET v = 1 / (5 - id) WHERE id > 2 AND id < 6'] LOOP
    SELECT c.ins, c.upd, c.del, c.equal INTO am_counts_all.ins, am_counts_all.upd, am_counts_all.del, am_counts_all.equal FROM am_counts(ran) c;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT * FROM am_counts_all('always');
SELECT * FROM am_counts_all('off');
DROP FUNCTION am_counts, am_counts_all;
-- COPY counts a batch
COPY am_failed FROM stdin;
31	31	1
32	32	1
1	33	1
34	34	1
\.
COPY am_failed_heap FROM stdin;
31	31	1
32	32	1
1	33	1
34	34	1
\.
SELECT pg_stat_force_next_flush();
SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables WHERE relname IN ('am_failed', 'am_failed_heap') ORDER BY relname;
DROP TABLE am_failed, am_failed_heap;
-- Who reads pages finds none; ANALYZE samples rows, of partitions for their parent, too.
CREATE EXTENSION pg_prewarm;
CREATE TABLE am_paged (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);
CREATE TABLE am_paged_1 PARTITION OF am_paged FOR VALUES FROM (0) TO (500) USING mot;
CREATE TABLE am_paged_2 PARTITION OF am_paged FOR VALUES FROM (500) TO (1000) USING mot;
INSERT INTO am_paged SELECT g, g % 7 FROM generate_series(0, 999) g;
SELECT way, pg_prewarm('am_paged_1', way) AS rows, pg_prewarm('am_paged_1_pkey', way) AS keys FROM unnest(ARRAY['prefetch', 'read', 'buffer']) way;
SELECT pg_prewarm('am_paged_1', 'buffer', 'main', 0, 0);
ANALYZE am_paged;
SET track_activities = off;
ANALYZE am_paged_2;
RESET track_activities;
SELECT tablename, inherited, n_distinct FROM pg_stats WHERE tablename LIKE 'am\_paged%' AND attname = 'v' ORDER BY 1;
SELECT relname, reltuples, relpages > 0 AS has_pages FROM pg_class WHERE relname LIKE 'am\_paged__' ORDER BY 1;
DROP TABLE am_paged;
DROP EXTENSION pg_prewarm;
-- Updates of which no index had to be told
CREATE TABLE am_hot (id int PRIMARY KEY, k int, v int) USING mot;
CREATE INDEX ON am_hot (k);
INSERT INTO am_hot SELECT g, g, g FROM generate_series(1, 10) g;
CREATE FUNCTION am_hot(way text) RETURNS TABLE (upd bigint, hot bigint) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('mot.compiled_statements', way, true);
  UPDATE am_hot SET v = v + 1;
  UPDATE am_hot SET k = k + 1 WHERE id = 1;
  UPDATE am_hot SET k = k, v = 0 WHERE id = 2;
  INSERT INTO am_hot VALUES (3, 3, 3) ON CONFLICT (id) DO UPDATE SET v = 7;
  INSERT INTO am_hot VALUES (3, 3, 3) ON CONFLICT (id) DO UPDATE SET k = am_hot.k + 1;
  RETURN QUERY SELECT s.n_tup_upd, s.n_tup_hot_upd FROM pg_stat_xact_user_tables s WHERE relname = 'am_hot';
END $$;
SELECT * FROM am_hot('always');
SELECT * FROM am_hot('off');
DROP FUNCTION am_hot;
DROP TABLE am_hot;
-- Rows and entries in pg_class after what writes or vacuums a table, on heap and here
CREATE FUNCTION am_sized(method text) RETURNS TABLE (step text, relations text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('default_table_access_method', method, true);
  CREATE TABLE am_sized (id int PRIMARY KEY, v int);
  CREATE INDEX am_sized_v ON am_sized (v) WHERE v <= 5;
  INSERT INTO am_sized SELECT g, g FROM generate_series(1, 20) g;
  FOREACH step IN ARRAY ARRAY['CREATE INDEX am_sized_id ON am_sized (id, v)', 'ALTER TABLE am_sized ADD COLUMN x float8 DEFAULT random()', 'ALTER TABLE am_sized ALTER v TYPE bigint', 'REINDEX TABLE am_sized',
    'CLUSTER am_sized USING am_sized_pkey', 'ALTER TABLE am_sized SET UNLOGGED',
    'CREATE MATERIALIZED VIEW am_sized_view AS SELECT * FROM am_sized', 'CREATE UNIQUE INDEX am_sized_view_id ON am_sized_view (id)', 'REFRESH MATERIALIZED VIEW am_sized_view', 'TRUNCATE am_sized'] LOOP
    EXECUTE step;
    relations := (SELECT string_agg(substr(relname, 9) || ' ' || reltuples, ', ' ORDER BY relname) FROM pg_class WHERE relname LIKE 'am\_sized%');
    RETURN NEXT;
  END LOOP;
  DROP TABLE am_sized CASCADE;
END $$;
SET client_min_messages = warning;
SELECT * FROM am_sized('mot');
SELECT h.step, h.relations AS heap, m.relations AS mot FROM am_sized('heap') WITH ORDINALITY h (step, relations, at) JOIN am_sized('mot') WITH ORDINALITY m (step, relations, at) USING (at) WHERE h.relations <> m.relations;
DROP FUNCTION am_sized;
CREATE TABLE am_vacuumed (id int PRIMARY KEY, v int) USING mot;
CREATE INDEX am_vacuumed_v ON am_vacuumed (v) WHERE v < 10;
INSERT INTO am_vacuumed SELECT g, g FROM generate_series(1, 20) g;
VACUUM am_vacuumed;
SELECT relname, reltuples FROM pg_class WHERE relname LIKE 'am\_vacuumed%' ORDER BY 1;
VACUUM (VERBOSE) am_vacuumed;
-- a snapshot that sees the rows holds them back
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM am_vacuumed;
\setenv VACUUMED_DATABASE :DBNAME
\! psql -X -q -d "$VACUUMED_DATABASE" -c 'DELETE FROM am_vacuumed WHERE id <= 5' -c 'VACUUM (VERBOSE) am_vacuumed'
COMMIT;
DROP TABLE am_vacuumed;
-- VACUUM notes that the last index has gone.
CREATE TABLE am_unindexed (id int, v int) USING mot;
CREATE INDEX am_unindexed_id ON am_unindexed (id);
CREATE INDEX am_unindexed_v ON am_unindexed (v);
DROP INDEX am_unindexed_id;
VACUUM am_unindexed;
SELECT hasindexes FROM pg_tables WHERE tablename = 'am_unindexed';
DROP INDEX am_unindexed_v;
VACUUM am_unindexed;
SELECT hasindexes FROM pg_tables WHERE tablename = 'am_unindexed';
DROP TABLE am_unindexed;
