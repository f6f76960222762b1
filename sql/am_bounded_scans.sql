-- How far a scan reads an index: ranges of enums, values of other types, and operator classes that
-- sort backwards behind other columns. Each statement on heap tables and on memory-optimized ones.
\getenv top PG_ABS_SRCDIR
\cd :top
\set helpers 'sql/forms/on_both.sql'
\set started :ECHO
\set ECHO none
\i :helpers
\set ECHO :started
SET jit = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET TimeZone = 'America/New_York';
-- What EXPLAIN ANALYZE tells of rows that a condition of the index has refused.
CREATE FUNCTION ordered.refused(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line ~ 'Removed' THEN RETURN NEXT trim(line); END IF;
  END LOOP;
END $$;
CREATE TYPE ordered.state AS ENUM ('new', 'held', 'mid', 'done');
ALTER TYPE ordered.state ADD VALUE 'late' AFTER 'mid';
ALTER TYPE ordered.state ADD VALUE 'early' BEFORE 'held';
CREATE FUNCTION ordered.backwards(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS ordered.backwards FOR TYPE int USING btree AS
  OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 ordered.backwards(int, int);
SELECT on_both($$CREATE TABLE task (id int PRIMARY KEY, s state, at timestamp, d date, t text COLLATE "C", n int)$$);
SELECT on_both($$INSERT INTO task SELECT g, (enum_range(NULL::state))[1 + g % 6], '2024-03-08'::timestamp + g * interval '2 hours', '2024-01-01'::date + g, 'n' || g % 500, g % 7
  FROM generate_series(1, 3000) g$$);
SELECT on_both($$INSERT INTO task VALUES (0, NULL, 'infinity', 'infinity', repeat('x', 63), 3), (-1, 'late', '-infinity', '-infinity', 'x', NULL)$$);
SELECT on_both($$CREATE INDEX task_s ON task (s, at DESC, id)$$);
SELECT on_both($$CREATE INDEX task_at ON task (at, id)$$);
SELECT on_both($$CREATE INDEX task_d ON task (d, id)$$);
SELECT on_both($$CREATE INDEX task_t ON task (t, id)$$);
SELECT on_both($$CREATE INDEX task_n ON task (n, id backwards DESC)$$);
SELECT on_both('ANALYZE task');
-- several conditions on a column: a list with a range or a value, and NULL with anything else
SELECT on_both($$SELECT id FROM task WHERE id = ANY('{7,3,NULL,9,4,2000}') AND id >= 4 AND id < 9 ORDER BY id DESC$$);
SELECT on_both($$SELECT id FROM task WHERE id = ANY(ARRAY(SELECT generate_series(1, 2000))) AND id > 1998$$);
SELECT on_both($$SELECT count(*) FROM task WHERE n = ANY('{1,2,3,4,5}') AND n = 2 AND id < 10$$), on_both($$SELECT count(*) FROM task WHERE n = ANY('{1,2}') AND n > 1.5 AND id < 30$$);
SELECT on_both($$SELECT count(*) FROM task WHERE id = ANY('{1,2,3}') AND id < NULL$$), on_both($$SELECT count(*) FROM task WHERE id = ANY('{1,2,3}') AND id > 3$$);
SELECT on_both($$SELECT count(*) FROM task WHERE n IS NULL AND n = 3$$), on_both($$SELECT count(*) FROM task WHERE n < 5 AND n IS NULL$$), on_both($$SELECT count(*) FROM task WHERE n IS NULL AND n IS NOT NULL$$);
SELECT on_both($$SELECT id FROM task WHERE t = ANY('{n1,n2,n3}') AND t > 'n1' AND t < 'n3' AND id < 600$$);
SELECT on_both($$SELECT id FROM task WHERE s = ANY('{late,mid,new}') AND s > 'mid' AND id < 12 ORDER BY id$$);
CREATE FUNCTION ordered.listed(list int[], below int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE found bigint;
BEGIN
  SELECT count(*) INTO found FROM task WHERE id = ANY(list) AND id < below;
  RETURN found;
END $$;
SELECT on_both($$SELECT listed(ARRAY(SELECT generate_series(1, 3000)), g) FROM generate_series(1, 8) g$$);
SELECT on_both($$SELECT count(*) FROM task WHERE n = ANY('{2,5}') AND n IS NOT NULL AND id < 9$$);
SELECT on_both($$SELECT count(*) FROM task WHERE id = ANY(ARRAY(SELECT generate_series(1, 9))) AND id > 2147483647$$);
-- enums
SELECT on_both($$SELECT id FROM task WHERE s >= 'held' ORDER BY s, at DESC, id LIMIT 5$$);
SELECT on_both($$SELECT id FROM task WHERE s < 'held' ORDER BY s DESC, at, id DESC LIMIT 5$$);
SELECT on_both($$SELECT id FROM task WHERE s > 'held' AND s < 'done' ORDER BY s, at DESC LIMIT 5$$);
SELECT on_both($$SELECT count(*) FROM task WHERE s <= 'done'$$), on_both($$SELECT count(*) FROM task WHERE s < 'new'$$), on_both($$SELECT count(*) FROM task WHERE s > NULL$$);
SELECT on_both($$SELECT count(*) FROM task WHERE s >= 'mid' AND s = 'late'$$), on_both($$SELECT count(*) FROM task WHERE s > 'mid' AND s = ANY('{late,mid}')$$);
SELECT on_both($$SELECT count(*) FROM task a WHERE EXISTS (SELECT FROM task b WHERE b.s > a.s AND b.at = a.at + interval '2 hours')$$);
SELECT on_both($$CREATE INDEX task_n_s ON task (n, s DESC NULLS FIRST, id)$$);
SELECT on_both($$SELECT n, s, id FROM task WHERE n = ANY('{5,2}') AND s > 'mid' AND s <= 'done' AND id < 30 ORDER BY n, s DESC, id$$);
SELECT on_both($$SELECT count(*), sum(id) FROM task WHERE s < 'held' AND id BETWEEN 100 AND 200$$);
SELECT on_both($$WITH f AS (SELECT n, s, id FROM task WHERE n = 3 AND s >= 'late' ORDER BY n DESC, s, id DESC LIMIT 3) SELECT * FROM f$$);
BEGIN;
SET LOCAL search_path = on_mot, ordered;
DECLARE c SCROLL CURSOR FOR SELECT s, id FROM task WHERE n = 3 AND s > 'held' AND s < 'done' ORDER BY n, s DESC NULLS FIRST, id;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
COMMIT;
BEGIN;
ALTER TYPE state ADD VALUE 'last';
SELECT on_both($$SELECT count(*) FROM task WHERE s >= 'done'$$);
ROLLBACK;
-- times as instants: where the clock goes forward, two of them are equal
SELECT on_both($$SELECT id FROM task WHERE at = '2024-03-12 04:00:00'::timestamptz$$);
SELECT on_both($$SELECT id FROM task WHERE at = 'infinity'::timestamptz OR at = '-infinity'::timestamptz ORDER BY id$$);
SELECT on_both($$SELECT id FROM task WHERE d = '2024-03-12 00:00:00'::timestamptz$$), on_both($$SELECT id FROM task WHERE d = '2024-03-12 00:00:01'::timestamptz$$);
SELECT on_both($$SELECT count(*) FROM task a JOIN (SELECT at::timestamptz AS at FROM task WHERE id BETWEEN 100 AND 200) b ON a.at = b.at$$);
-- names
SELECT on_both($$SELECT count(*) FROM task WHERE t = 'n77'::name$$), on_both($$SELECT count(*) FROM task WHERE t < 'n77'::name$$);
SELECT on_both($$SELECT count(*) FROM task WHERE t = ANY(ARRAY['n77', 'n78', NULL]::name[])$$), on_both($$SELECT count(*) FROM task WHERE t = repeat('x', 80)::name$$);
-- backwards
SELECT on_both($$SELECT id FROM task WHERE n = 3 ORDER BY id LIMIT 3$$), on_both($$SELECT id FROM task WHERE n = 3 AND id > 2990 ORDER BY id DESC$$);
SELECT on_both($$SELECT max(id), min(id) FROM task WHERE n = 2$$);
-- few rows are read that do not pass
SET search_path = on_mot, ordered;
SELECT refused($$SELECT id FROM task WHERE s > 'late' LIMIT 5$$);
SELECT refused($$SELECT id FROM task WHERE s < 'late' AND s > 'held' ORDER BY s, at DESC LIMIT 5$$);
SELECT refused($$SELECT id FROM task WHERE t = 'n77'::name$$);
SELECT refused($$SELECT id FROM task WHERE at = '2024-05-12 04:00:00'::timestamptz$$);
SELECT refused($$SELECT id FROM task WHERE id = ANY('{7,2000,2001,2002}') AND id < 9$$);
SELECT refused($$SELECT id FROM task WHERE n = ANY('{1,2,3,4,5,6}') AND n = 2 AND id = 2$$);
SELECT refused($$SELECT id FROM task WHERE s IS NULL AND s = 'late'$$);
-- what the ranges answer is not asked again of each row
CREATE SEQUENCE ordered.calls;
CREATE FUNCTION ordered.counted(value int) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('ordered.calls'); RETURN value; END $$;
PREPARE listed(int[]) AS SELECT count(*), max(n) FROM task WHERE id = ANY($1) AND id < counted(500) AND id IS NOT NULL;
SET plan_cache_mode = force_generic_plan;
SELECT array_agg(g) AS list FROM generate_series(1, 1000) g \gset
EXECUTE listed(:'list');
SELECT last_value < 9 AS few FROM ordered.calls;
DEALLOCATE listed;
SELECT rows FROM mot.check('task');
DROP SCHEMA on_heap, on_mot, ordered CASCADE;
