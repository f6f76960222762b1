-- Conditions that a scan of a table evaluates over rows as they lie in memory, beside a heap table with the same rows, whose conditions core
-- evaluates. Nothing is printed of random conditions but what differs: rows, or the error.
CREATE SCHEMA am_filters;
SET search_path = am_filters;
SET jit = off;
SET client_min_messages = warning;
SELECT setseed(0.2718);
CREATE TABLE fl_heap (id int, gone text, a int2, b int4, c int8, d date, ts timestamp, tz timestamptz, tm time, e bool, o oid, ch "char", f float8,
  t text, v varchar(12), p char(5), w text COLLATE "C", last int4);
CREATE TABLE fl_mot (id int, gone text, a int2, b int4, c int8, d date, ts timestamp, tz timestamptz, tm time, e bool, o oid, ch "char", f float8,
  t text, v varchar(12), p char(5), w text COLLATE "C", last int4) USING mot;

CREATE FUNCTION fl_one(choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION fl_text() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT quote_literal(fl_one(ARRAY['', ' ', 'a', 'A', 'ab', 'ab ', 'abc', 'abcabc', 'bca', 'ä', 'äb', 'a%', 'a_c', 'a\b', 'ßab', repeat('ab', 100)])) $$;
CREATE FUNCTION fl_value(col text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN random() < 0.15 THEN 'NULL' ELSE CASE
    WHEN col = 'a' THEN fl_one(ARRAY['-32768', '-1', '0', '1', '2', '7', '32767'])
    WHEN col IN ('b', 'last') THEN fl_one(ARRAY['-2147483648', '-1', '0', '1', '2', '7', '100', '2147483647'])
    WHEN col = 'c' THEN fl_one(ARRAY['-9223372036854775808', '-1', '0', '1', '2', '5000000000', '9223372036854775807'])
    WHEN col = 'd' THEN quote_literal(fl_one(ARRAY['-infinity', '2020-01-01', '2024-02-29', 'infinity']))
    WHEN col IN ('ts', 'tz') THEN quote_literal(fl_one(ARRAY['-infinity', '2020-01-01 00:00', '2024-02-29 12:00:00.5', 'infinity']))
    WHEN col = 'tm' THEN quote_literal(fl_one(ARRAY['00:00', '12:34:56', '24:00']))
    WHEN col = 'e' THEN fl_one(ARRAY['true', 'false'])
    WHEN col = 'o' THEN fl_one(ARRAY['0', '1', '4294967295'])
    WHEN col = 'ch' THEN quote_literal(fl_one(ARRAY['', 'a', 'z', '\377'])) 
    WHEN col = 'f' THEN fl_one(ARRAY['0', '1.5', '''NaN'''])
    WHEN col IN ('v', 'p') THEN format('substr(%s, 1, 5)', fl_text())
    ELSE fl_text() END END $$;
CREATE FUNCTION fl_row(id int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('(%s, ''gone %s'', %s)', id, id, string_agg(fl_value(col), ', ' ORDER BY n))
  FROM unnest(ARRAY['a', 'b', 'c', 'd', 'ts', 'tz', 'tm', 'e', 'o', 'ch', 'f', 't', 'v', 'p', 'w', 'last']) WITH ORDINALITY u (col, n) $$;

-- numbers that may overflow, and divide by zero
CREATE FUNCTION fl_number(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random();
BEGIN
  IF depth = 0 OR kind < 0.4 THEN
    RETURN fl_one(ARRAY['a', 'b', 'c', 'last', 'young', 'a', 'b', 'c', '0', '1', '2', '-1', '7', '10', '1::int2', '-1::int2', '5000000000', 'NULL::int4', '2147483647']);
  ELSIF kind < 0.9 THEN
    RETURN format('(%s %s %s)', fl_number(depth - 1), fl_one(ARRAY['+', '-', '*', '/', '%', '%']), fl_number(depth - 1));
  ELSIF kind < 0.95 THEN
    RETURN format('(- %s)', fl_number(depth - 1));
  END IF;
  RETURN fl_one(ARRAY['a::int4', 'a::int8', 'b::int8', 'c::int4', 'c::int2', 'length(t)']);
END $$;
CREATE FUNCTION fl_condition(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random(); op text := fl_one(ARRAY['=', '<>', '<', '<=', '>', '>=']);
  col text; textual text := fl_one(ARRAY['t', 'v', 'p', 'w', 't']);
BEGIN
  IF depth > 0 AND kind < 0.45 THEN
    RETURN CASE
      WHEN kind < 0.2 THEN format('(%s AND %s)', fl_condition(depth - 1), fl_condition(depth - 1))
      WHEN kind < 0.35 THEN format('(%s OR %s)', fl_condition(depth - 1), fl_condition(depth - 1))
      WHEN kind < 0.4 THEN format('(NOT %s)', fl_condition(depth - 1))
      ELSE format('((%s) IS %s)', fl_condition(depth - 1), fl_one(ARRAY['TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE', 'UNKNOWN', 'NOT UNKNOWN'])) END;
  END IF;
  kind := random();
  IF kind < 0.3 THEN RETURN format('%s %s %s', fl_number(2), op, fl_number(1)); END IF;
  IF kind < 0.5 THEN
    col := fl_one(ARRAY['a', 'b', 'c', 'd', 'ts', 'tz', 'tm', 'e', 'o', 'ch', 'f', 'last']);
    RETURN CASE WHEN random() < 0.8 THEN format('%s %s %s', col, op, fl_value(col)) ELSE format('%s %s %s', fl_value(col), op, col) END;
  END IF;
  IF kind < 0.62 THEN RETURN format('%s %s %s', textual, op, fl_value('t')); END IF;
  IF kind < 0.66 THEN RETURN format('%s %s %s', fl_one(ARRAY['t', 'w', 'v']), op, fl_one(ARRAY['t', 'w', 'v']) || ' COLLATE "C"'); END IF;
  IF kind < 0.82 THEN
    RETURN format('%s %s %L', textual, fl_one(ARRAY['LIKE', 'LIKE', 'NOT LIKE']),
      fl_one(ARRAY['', '%', '%%', 'a%', '%a', '%a%', 'a%c', 'ab%bc', 'a', '%ab%', '%b%a%', '%bc%b%', 'a_c', 'a\%', '%ä%', 'ä%', '%abab%abab', '%  ']));
  END IF;
  IF kind < 0.9 THEN RETURN format('%s IS %s NULL', fl_one(ARRAY['a', 'b', 'd', 'e', 't', 'p', 'w', 'last', 'young']), fl_one(ARRAY['', 'NOT'])); END IF;
  IF kind < 0.94 THEN RETURN fl_one(ARRAY['e', 'NOT e', 'e IS TRUE', 'e IS NOT FALSE', 'e IS UNKNOWN']); END IF;
  RETURN fl_one(ARRAY['length(t) > 2', 't ~ ''b''', 'b = ANY (ARRAY[1, 7, NULL])', 'f > 1', 'd > now()', 'coalesce(a, 1) = 1', 'ctid IS NOT NULL']);
END $$;

CREATE TABLE fl_differences (difference text);
CREATE FUNCTION fl_answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text;
BEGIN
  EXECUTE query INTO answer;
  RETURN answer;
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate || ' ' || sqlerrm;
END $$;
CREATE PROCEDURE fl_run(conditions int) LANGUAGE plpgsql AS $$
DECLARE condition text; query text; heap text; ours text;
BEGIN
  FOR i IN 1..conditions LOOP
    condition := fl_condition(2);
    FOREACH query IN ARRAY ARRAY[
      'SELECT concat_ws('' '', count(*), sum(id), min(t)) FROM some_table WHERE ' || condition,
      'SELECT id::text FROM some_table WHERE ' || condition || ' LIMIT 1'] LOOP
      heap := fl_answer(replace(query, 'some_table', 'fl_heap'));
      ours := fl_answer(replace(query, 'some_table', 'fl_mot'));
      IF ours IS DISTINCT FROM heap THEN
        INSERT INTO fl_differences VALUES (format('%s: ours %s, heap %s', query, ours, heap));
      END IF;
    END LOOP;
  END LOOP;
END $$;

-- rows older than a column, rows with a value of a column that is gone
CREATE PROCEDURE fl_fill(first int, last int) LANGUAGE plpgsql AS $$
DECLARE command text;
BEGIN
  SELECT string_agg(fl_row(n), ', ') INTO command FROM generate_series(first, last) n;
  EXECUTE 'INSERT INTO fl_heap VALUES ' || command;
  EXECUTE 'INSERT INTO fl_mot VALUES ' || command;
END $$;
CALL fl_fill(1, 40);
ALTER TABLE fl_heap ADD COLUMN young int DEFAULT 7;
ALTER TABLE fl_mot ADD COLUMN young int DEFAULT 7;
CALL fl_run(500);
ALTER TABLE fl_heap DROP COLUMN gone;
ALTER TABLE fl_mot DROP COLUMN gone;
INSERT INTO fl_heap SELECT 100 + n, 1, 2, 3, NULL, NULL, NULL, NULL, true, 1, 'a', 1, 'abc', 'ab', 'ab', 'b', 4, 5 FROM generate_series(1, 3) n;
INSERT INTO fl_mot SELECT 100 + n, 1, 2, 3, NULL, NULL, NULL, NULL, true, 1, 'a', 1, 'abc', 'ab', 'ab', 'b', 4, 5 FROM generate_series(1, 3) n;
CALL fl_run(1000);
SELECT * FROM fl_differences;
SELECT count(*) > 20 AS has_rows FROM fl_mot;

-- the order of conditions decides whether there is an error
CREATE TABLE fl (id int PRIMARY KEY, a int, t text) USING mot;
INSERT INTO fl SELECT n, n % 5, 'text ' || n FROM generate_series(1, 100) n;
SELECT count(*) FROM fl WHERE a <> 0 AND 10 / a > 3;
SELECT count(*) FROM fl WHERE 10 / a > 3 AND a <> 0;
SELECT count(*) FROM fl WHERE a = 1 AND id + 2147483600 > 0;
SELECT count(*) FROM fl WHERE a = 1 AND id + 2147483500 > 0;
-- a condition that only core evaluates, behind one that is done here
SELECT count(*) FROM fl WHERE a = 1 AND length(t) = 7;
SELECT count(*) FROM fl WHERE a = 1 AND id IN (SELECT 6);

-- what EXPLAIN counts, without what versions of the server write differently
CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF) ' || statement LOOP
    CONTINUE WHEN line ~ 'Index Searches:';
    RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1');
  END LOOP;
END $$;
SELECT plan_of($$SELECT id FROM fl WHERE a % 5 = 3$$);
SELECT plan_of($$SELECT id FROM fl WHERE a = 3 AND length(t) = 7$$);
SELECT plan_of($$SELECT id FROM fl WHERE id > 50 AND t LIKE '%1%' ORDER BY id DESC LIMIT 3$$);

-- parameters: of the client, of a function, of a join, of subqueries
SET plan_cache_mode = force_generic_plan;
PREPARE fl_p (int, text) AS SELECT id FROM fl WHERE a = $1 AND t > $2 ORDER BY id LIMIT 2;
EXECUTE fl_p (1, 'text 5');
EXECUTE fl_p (1, 'text 5');
EXECUTE fl_p (2, 'text 3');
EXECUTE fl_p (NULL, 'text 3');
EXECUTE fl_p (2, NULL);
EXECUTE fl_p (2, repeat('text 3', 100000));
EXECUTE fl_p (1, 'text 5');
PREPARE fl_sum (int) AS SELECT sum(id) FROM fl WHERE a = $1;
EXECUTE fl_sum (1);
EXECUTE fl_sum (2);
EXECUTE fl_sum (NULL);
EXECUTE fl_sum (3);
CREATE FUNCTION fl_f(wanted int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found int; all_found text := ''; pattern text := 'text 1' || wanted;
BEGIN
  FOR round IN 1..4 LOOP
    SELECT count(*) INTO found FROM fl WHERE a = wanted AND t <> pattern;
    all_found := all_found || ' ' || found;
    wanted := nullif(wanted + 1, 4);
    pattern := 'text 1' || wanted;
  END LOOP;
  RETURN all_found;
END $$;
SELECT fl_f(1), fl_f(2);
CREATE FUNCTION fl_g() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; found text := ''; wanted int := 1;
BEGIN
  FOR r IN SELECT id FROM fl WHERE a = wanted AND id < 20 ORDER BY id LOOP
    wanted := 2;
    found := found || ' ' || r.id;
  END LOOP;
  RETURN found;
END $$;
SELECT fl_g();
CREATE FUNCTION fl_unassigned() RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record; found int;
BEGIN
  SELECT count(*) INTO found FROM fl WHERE a = 77 AND id = r.id;
  RAISE INFO 'no row asks for it: %', found;
  SELECT count(*) INTO found FROM fl WHERE a = 1 AND t = r.t;
  RETURN found;
END $$;
SELECT fl_unassigned();
-- a value that is compressed, and one that lies elsewhere
CREATE TABLE fl_long (number int, t text);
INSERT INTO fl_long SELECT 1, repeat('text 3', 10000) UNION ALL SELECT 2, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000) n);
INSERT INTO fl SELECT 100 + number, 77, t FROM fl_long;
CREATE FUNCTION fl_h() RETURNS text LANGUAGE plpgsql AS $$
DECLARE wanted text; found text := ''; total int;
BEGIN
  FOR round IN 1..2 LOOP
    FOR n IN 1..2 LOOP
      SELECT t INTO wanted FROM fl_long WHERE number = n;
      SELECT sum(id) INTO total FROM fl WHERE t = wanted;
      found := found || ' ' || total;
    END LOOP;
  END LOOP;
  RETURN found;
END $$;
SELECT fl_h();
SELECT id FROM fl WHERE t LIKE '%9e3%' AND a = 77 ORDER BY 1;
DELETE FROM fl WHERE a = 77;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SELECT n, (SELECT count(*) FROM fl WHERE a = n) FROM generate_series(0, 5) n;
SELECT n, (SELECT max(id) FROM fl WHERE a = n) FROM generate_series(0, 5) n;
SELECT count(*) FROM fl WHERE a = (SELECT max(a) - 1 FROM fl);
SELECT l.id, count(r.id) FROM fl l LEFT JOIN LATERAL (SELECT id FROM fl WHERE a > l.a OFFSET 0) r ON true WHERE l.id < 7 GROUP BY l.id ORDER BY 1;
RESET ALL;
SET search_path = am_filters;
SET client_min_messages = warning;

-- cursors, forward and backward; rows changed under them
BEGIN;
DECLARE fl_c SCROLL CURSOR FOR SELECT id, t FROM fl WHERE a = 3;
FETCH 2 FROM fl_c;
UPDATE fl SET a = 4 WHERE id IN (13, 18);
FETCH 2 FROM fl_c;
FETCH BACKWARD 3 FROM fl_c;
DELETE FROM fl WHERE a = 3;
FETCH 2 FROM fl_c;
ROLLBACK;
BEGIN;
DECLARE fl_c CURSOR FOR SELECT id, t FROM fl WHERE a = 3 FOR UPDATE;
FETCH 2 FROM fl_c;
UPDATE fl SET t = 'changed' WHERE CURRENT OF fl_c;
FETCH 1 FROM fl_c;
SELECT id, t FROM fl WHERE t = 'changed';
ROLLBACK;

-- a security barrier's condition goes first, and what leaks sees no other rows
CREATE FUNCTION fl_leak(t text) RETURNS bool LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE WARNING 'seen: %', t; RETURN true; END $$;
CREATE VIEW fl_view WITH (security_barrier) AS SELECT * FROM fl WHERE a = 4 AND id < 15;
SELECT id FROM fl_view WHERE fl_leak(t) AND id % 2 = 1;

-- the plan, beside core's own: what the filter can do of the first conditions decides
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM fl WHERE a = 3;
EXPLAIN (COSTS OFF) SELECT * FROM fl;
EXPLAIN (COSTS OFF) SELECT * FROM fl WHERE length(t) = 7;
EXPLAIN (COSTS OFF) SELECT * FROM fl WHERE a = 3 AND length(t) = 7;
-- nearly all rows pass its part, so that nothing is saved
ANALYZE fl;
EXPLAIN (COSTS OFF) SELECT * FROM fl WHERE id > 0 AND length(t) > 0;
EXPLAIN (COSTS OFF) UPDATE fl SET t = t WHERE a = 3;
EXPLAIN (COSTS OFF) SELECT id FROM fl WHERE a = 3 FOR UPDATE;
SET enable_seqscan = off;
SELECT count(*) AS offered FROM plan_of($$SELECT id FROM fl WHERE a = 3$$) line WHERE line LIKE '%MOT Scan%';
RESET enable_seqscan;
SET mot.compiled_statements = off;
EXPLAIN (COSTS OFF) SELECT id FROM fl WHERE a = 3;
RESET mot.compiled_statements;

-- system columns, changes and locks
CREATE TABLE fl_same (LIKE fl);
INSERT INTO fl_same SELECT * FROM fl;
SELECT count(*), count(DISTINCT ctid), bool_and(tableoid = 'fl'::regclass), bool_and(xmin::text::int8 > 0), bool_and(xmax = 0), bool_and(cmin::text::int < 1000) FROM (SELECT *, ctid, tableoid, xmin, xmax, cmin FROM fl WHERE a < 3 OFFSET 0) x;
SELECT count(*) FROM fl f JOIN fl_same s ON f.ctid = (SELECT ctid FROM fl g WHERE g.id = s.id) WHERE f.a > 2;
BEGIN;
UPDATE fl SET a = a + 1, t = t || '!' WHERE a >= 3;
UPDATE fl_same SET a = a + 1, t = t || '!' WHERE a >= 3;
DELETE FROM fl WHERE a = 5 AND id % 3 = 0;
DELETE FROM fl_same WHERE a = 5 AND id % 3 = 0;
SELECT * FROM fl EXCEPT SELECT * FROM fl_same;
SELECT * FROM fl_same EXCEPT SELECT * FROM fl;
SELECT count(*) FROM fl WHERE t LIKE '%!' AND a = 4;
SAVEPOINT s;
DELETE FROM fl WHERE a = 4;
SELECT count(*) FROM fl WHERE a = 4;
ROLLBACK TO s;
SELECT count(*) FROM (SELECT 1 FROM fl WHERE a = 4 FOR UPDATE) x;
SELECT id, xmax <> 0 AS locked FROM fl WHERE a = 4 ORDER BY id LIMIT 1;
ROLLBACK;
-- what a function of the statement changes is not seen by its scan
CREATE FUNCTION fl_change(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE fl SET a = 3 WHERE id = $1 + 1; RETURN $1; END $$;
BEGIN;
SELECT count(fl_change(id)) FROM fl WHERE a = 3;
SELECT count(*) FROM fl WHERE a = 3;
ROLLBACK;

-- cursors: to and fro, held, at a row; over a rollback
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM fl WHERE a = 3;
FETCH ALL FROM c;
FETCH BACKWARD 3 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD ALL FROM c;
FETCH BACKWARD 1 FROM c;
FETCH 1 FROM c;
FETCH ABSOLUTE 5 FROM c;
FETCH RELATIVE -2 FROM c;
FETCH LAST FROM c;
MOVE BACKWARD 100 IN c;
FETCH NEXT FROM c;
CLOSE c;
DECLARE c CURSOR WITH HOLD FOR SELECT id FROM fl WHERE a = 3 AND id > 50;
FETCH 2 FROM c;
COMMIT;
FETCH 2 FROM c;
CLOSE c;
BEGIN;
DECLARE c CURSOR FOR SELECT id, t FROM fl WHERE a = 3 AND id > 50;
FETCH 2 FROM c;
UPDATE fl SET t = 'at the cursor' WHERE CURRENT OF c RETURNING id, t;
FETCH 1 FROM c;
DELETE FROM fl WHERE CURRENT OF c RETURNING id;
SAVEPOINT s;
INSERT INTO fl VALUES (1003, 3, 'new');
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 3 FROM c;
ROLLBACK;

-- row security: what leaks sees no row that the policy hides, whatever it costs
CREATE ROLE fl_reader;
GRANT SELECT, UPDATE ON fl TO fl_reader;
GRANT USAGE ON SCHEMA am_filters TO fl_reader;
GRANT EXECUTE ON FUNCTION fl_leak TO fl_reader;
ALTER TABLE fl ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON fl USING (a = 4 AND length(t) < 7 AND id < 15);
SET ROLE fl_reader;
EXPLAIN (COSTS OFF) SELECT id FROM fl WHERE fl_leak(t) AND id % 2 = 1 AND t LIKE '%9%';
SELECT id FROM fl WHERE fl_leak(t) AND id % 2 = 1;
SELECT count(*), sum(id) FROM fl;
SELECT count(*) FROM fl WHERE id % 2 = 1;
SELECT count(*) FROM fl WHERE a < 4 OR fl_leak(t);
UPDATE fl SET id = id WHERE fl_leak(t) RETURNING id;
RESET ROLE;
DROP POLICY p ON fl;
ALTER TABLE fl DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON fl FROM fl_reader;

-- partitions of both kinds, and children
CREATE TABLE parts (id int, k int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100) USING mot;
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (200);
CREATE TABLE parts_3 (t text, k int, gone int, id int) USING mot;
ALTER TABLE parts_3 DROP gone;
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (200) TO (300);
INSERT INTO parts SELECT n, n % 7, 'part ' || n FROM generate_series(0, 299) n;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM parts WHERE k = 3 AND t LIKE '%7%';
SELECT count(*), sum(id), count(DISTINCT tableoid) FROM parts WHERE k = 3 AND t LIKE '%7%';
SELECT id FROM parts WHERE k = (SELECT 3) AND id > 95 ORDER BY id LIMIT 4;
EXPLAIN (COSTS OFF) SELECT id FROM parts WHERE k = 3 AND id = 205;
UPDATE parts SET id = id + 100 WHERE k = 3 AND id < 200;
SELECT tableoid::regclass, count(*) FROM parts WHERE k = 3 GROUP BY 1 ORDER BY 1;
CREATE TABLE parent (a int, b int) USING mot;
CREATE TABLE heap_child (c int) INHERITS (parent);
CREATE TABLE child (c int) INHERITS (parent) USING mot;
INSERT INTO parent SELECT n, n % 3 FROM generate_series(1, 9) n;
INSERT INTO heap_child SELECT n, n % 3, n FROM generate_series(10, 19) n;
INSERT INTO child SELECT n, n % 3, n FROM generate_series(20, 29) n;
SELECT tableoid::regclass, count(*), sum(a) FROM parent WHERE b = 1 GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM ONLY parent WHERE b = 1;
UPDATE parent SET b = 5 WHERE b = 1 AND a > 12;
SELECT count(*) FROM parent WHERE b = 5;

-- materialized views, samples, WITH, conditions that are no row's
CREATE MATERIALIZED VIEW fl_mv USING mot AS SELECT id, a FROM fl;
SELECT count(*) FROM fl_mv WHERE a = 2;
SELECT count(*) FROM fl TABLESAMPLE BERNOULLI (100) WHERE a = 2;
SELECT count(*) FROM fl WHERE a = 2 AND current_setting('search_path') = 'nowhere';
SELECT count(*) FROM fl WHERE a = 2 AND false;
WITH d AS (DELETE FROM fl WHERE a = 2 AND id > 90 RETURNING id) SELECT count(*), (SELECT count(*) FROM fl WHERE a = 2 AND id > 90) AS still FROM d;
SELECT count(*) FROM fl WHERE a = 2 AND id > 90;

-- columns with a value that older rows lack, of many types
CREATE TABLE young (id int) USING mot;
INSERT INTO young SELECT generate_series(1, 100);
ALTER TABLE young ADD i2 int2 DEFAULT 2, ADD i4 int DEFAULT -4, ADD i8 int8 DEFAULT 8000000000, ADD b bool DEFAULT true, ADD c "char" DEFAULT 'c', ADD o oid DEFAULT 77, ADD d date DEFAULT '2020-01-01',
  ADD ts timestamptz DEFAULT '2020-01-01 00:00+00', ADD t text DEFAULT 'young', ADD p char(10) DEFAULT 'padded', ADD long text DEFAULT repeat('long', 3000), ADD n numeric DEFAULT 1.50, ADD u uuid DEFAULT 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', ADD nothing int;
INSERT INTO young (id) SELECT generate_series(101, 110);
INSERT INTO young SELECT generate_series(111, 120), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1;
SELECT id FROM young WHERE i2 = 2 AND i4 = -4 AND i8 = 8000000000 AND b AND c = 'c' AND o = 77 AND d = '2020-01-01' AND ts = '2020-01-01 00:00+00' AND t = 'young' AND p = 'padded' AND t LIKE 'y%g' AND nothing IS NULL AND u IS NOT NULL AND id % 50 = 0 AND long = repeat('long', 3000);
SELECT count(*) FROM young WHERE i2 + i4 + i8 = 7999999998;
SELECT count(*) FROM young WHERE i4 IS NULL;
SELECT count(*), count(i2), sum(i2), sum(i4), sum(i8), bool_and(b), min(d), max(ts), count(t), sum(n), avg(n), count(u), count(nothing), sum(nothing) FROM young;
SELECT i4, d, count(*), sum(n), count(nothing) FROM young GROUP BY i4, d ORDER BY 1;
UPDATE young SET i4 = i4 + 1 WHERE i4 = -4 AND id <= 3 RETURNING id, i4, t, n;
SELECT count(*), sum(i4) FROM young WHERE t = 'young';
ALTER TABLE young ALTER i4 SET DEFAULT 5;
SELECT count(*) FROM young WHERE i4 = -4;

-- a SQL function's plan is older than its first statement
CREATE TABLE changing (id int, k int) USING mot;
INSERT INTO changing SELECT n, n % 4 FROM generate_series(1, 40) n;
CREATE FUNCTION changed() RETURNS SETOF changing LANGUAGE sql AS $$ ALTER TABLE changing SET ACCESS METHOD heap; SELECT * FROM changing WHERE k = 3 AND id > 30 $$;
CREATE FUNCTION changed_sum() RETURNS SETOF bigint LANGUAGE sql AS $$ ALTER TABLE changing SET ACCESS METHOD heap; SELECT count(*) FROM changing WHERE k = 3 AND id > 30 $$;
-- (planned at its turn since 18)
SELECT fl_answer('SELECT changed_sum()') ~ '^(3|55000 table "changing" got another access method)' AS is_right;
SELECT * FROM changed();
SELECT * FROM changing WHERE k = 3 AND id > 30;
ALTER TABLE changing SET ACCESS METHOD mot;
SELECT * FROM changing WHERE k = 3 AND id > 30;

-- what the statistics count is what a scan reads
CREATE TABLE counted (id int, k int) USING mot;
CREATE TABLE counted_heap (id int, k int);
INSERT INTO counted SELECT n, n % 10 FROM generate_series(1, 1000) n;
INSERT INTO counted_heap SELECT * FROM counted;
SELECT count(*) FROM counted WHERE k = 3;
SELECT count(*) FROM counted_heap WHERE k = 3;
SELECT id FROM counted WHERE k = 3 LIMIT 2;
SELECT id FROM counted_heap WHERE k = 3 LIMIT 2;
SELECT n, (SELECT sum(id + n) FROM counted WHERE k = n) FROM generate_series(1, 3) n;
SELECT n, (SELECT sum(id + n) FROM counted_heap WHERE k = n) FROM generate_series(1, 3) n;
SELECT pg_stat_force_next_flush();
SELECT relname, seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'am_filters' AND relname LIKE 'counted%' ORDER BY 1;
SELECT plan_of($$SELECT id FROM counted WHERE k = 3 LIMIT 2$$);
SELECT plan_of($$SELECT id FROM counted_heap WHERE k = 3 LIMIT 2$$);
SELECT plan_of($$SELECT count(*) FROM counted WHERE k = 3 AND id / k > 100$$);

-- SERIALIZABLE transactions look at rows one by one
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*), sum(id) FROM counted WHERE k = 3;
SELECT count(*) FROM (SELECT 1 FROM counted WHERE k = 3 AND id % 3 = 0 FOR UPDATE) x;
SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND relation = 'counted'::regclass AND page IS NULL;
ROLLBACK;

-- parallel workers
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE TABLE large (id int, k int, t text) USING mot;
INSERT INTO large SELECT n, n % 100, 'large ' || n FROM generate_series(1, 30000) n;
DELETE FROM large WHERE id % 10 = 3;
ANALYZE large;
EXPLAIN (COSTS OFF) SELECT sum(length(t)) FROM large WHERE k = 7;
SELECT count(DISTINCT id), sum(length(t)) FROM large WHERE k = 7;
SET parallel_leader_participation = off;
SELECT count(DISTINCT id), sum(length(t)) FROM large WHERE k = 7;
SELECT count(DISTINCT id), sum(length(t)) FROM large WHERE k = 7 AND length(t) = 9;
PREPARE of_k (int) AS SELECT count(DISTINCT id), sum(length(t)) FROM large WHERE k = $1 AND t LIKE '%7%';
SET plan_cache_mode = force_generic_plan;
EXECUTE of_k (7);
EXECUTE of_k (17);
SELECT n, c FROM generate_series(5, 7) n, LATERAL (SELECT count(DISTINCT id) AS c FROM large WHERE k = n) x;
BEGIN;
UPDATE large SET k = 7 WHERE k = 8;
SELECT count(DISTINCT id), sum(length(t)) FROM large WHERE k = 7;
ROLLBACK;
SELECT plan_of($$SELECT id FROM large WHERE k = 200$$);
-- a division by zero in a worker
SELECT count(DISTINCT id) FROM large WHERE t < 'm' AND 10 / (id - 29999) > 0;
RESET ALL;
SET client_min_messages = warning;
SET search_path = am_filters;
-- many keys of a unique index at once
CREATE TABLE fl_keys_heap (a int, b int, t text, PRIMARY KEY (a, b));
CREATE TABLE fl_keys (a int, b int, t text, PRIMARY KEY (a, b)) USING mot;
INSERT INTO fl_keys SELECT n / 10, n % 10, 'row ' || n FROM generate_series(1, 2000) n;
DELETE FROM fl_keys WHERE a % 7 = 1;
UPDATE fl_keys SET a = a + 1000 WHERE a % 7 = 2;
UPDATE fl_keys SET b = b + 100 WHERE a % 7 = 3;
INSERT INTO fl_keys_heap SELECT * FROM fl_keys;
CREATE PROCEDURE fl_run_keys(statements int) LANGUAGE plpgsql AS $$
DECLARE query text; heap text; ours text; a text; b text;
BEGIN
  FOR i IN 1..statements LOOP
    SELECT string_agg(CASE WHEN random() < 0.02 THEN 'NULL' ELSE floor(random() * 210)::text END, ', ') INTO a FROM generate_series(1, fl_one(ARRAY['1', '2', '15', '16', '17', '100'])::int);
    SELECT string_agg(floor(random() * 12)::text, ', ') INTO b FROM generate_series(1, fl_one(ARRAY['1', '2', '5'])::int);
    query := format('SELECT string_agg(r::text, '' '') FROM (SELECT a, b, t FROM %%s WHERE a IN (%s) AND b = ANY (ARRAY[%s]) ORDER BY a %s %s) r',
      a, b, fl_one(ARRAY['ASC, b ASC', 'DESC, b DESC', ', b DESC']), fl_one(ARRAY['', '', 'LIMIT 3', 'LIMIT 20']));
    heap := fl_answer(format(query, 'fl_keys_heap'));
    ours := fl_answer(format(query, 'fl_keys'));
    IF ours IS DISTINCT FROM heap THEN
      INSERT INTO fl_differences VALUES (format('%s: ours %s, heap %s', query, ours, heap));
    END IF;
  END LOOP;
END $$;
CALL fl_run_keys(300);
SELECT * FROM fl_differences;
PREPARE fl_many (int[]) AS SELECT a, b, t FROM fl_keys WHERE a = ANY ($1) AND b = 5;
EXECUTE fl_many ('{3, 5, 5, NULL, 4, 9999}');
EXECUTE fl_many ('{}');
EXECUTE fl_many ('{6}');
BEGIN;
DECLARE fl_c CURSOR FOR SELECT a, b FROM fl_keys WHERE a = ANY ('{5, 6, 11, 12, 13, 14, 19, 20, 21, 26, 27, 28, 33, 34, 35, 40, 41, 42}') AND b = 5;
FETCH 2 FROM fl_c;
DELETE FROM fl_keys WHERE a IN (11, 12, 40, 41);
UPDATE fl_keys SET a = 2000 WHERE a = 42 AND b = 5;
FETCH ALL FROM fl_c;
SELECT a, b FROM fl_keys WHERE a IN (40, 41, 42, 2000) AND b = 5;
ROLLBACK;

DROP OWNED BY fl_reader;
DROP SCHEMA am_filters CASCADE;
DROP ROLE fl_reader;
