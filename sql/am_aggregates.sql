-- Aggregates computed inside the scan (executor/aggregate) over tables of the access method, beside a heap table with the same rows, whose aggregates core computes. Nothing is printed of
-- random queries but what differs: the result, with its display scale, or the error.
CREATE SCHEMA am_aggregates;
SET search_path = am_aggregates;
SET jit = off;
SET client_min_messages = warning;
SELECT setseed(0.1618);
-- Sums of floats depend on the order of rows, which a plan has that knows more of the heap table in the middle of the test.
CREATE TABLE heap (id int PRIMARY KEY, gone text, a int2, b int4, c int8, n numeric, m numeric(8,2), d date, ts timestamp, tz timestamptz, tm time, mo money, e bool, f float8, t text, last int4) WITH (autovacuum_enabled = off);
CREATE TABLE mot (id int PRIMARY KEY, gone text, a int2, b int4, c int8, n numeric, m numeric(8,2), d date, ts timestamp, tz timestamptz, tm time, mo money, e bool, f float8, t text, last int4) USING mot;
CREATE FUNCTION one(choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION value(col text, nulls float8) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN random() < nulls THEN 'NULL' ELSE CASE
    WHEN col = 'a' THEN one(ARRAY['-32768', '-1', '0', '1', '2', '7', '32767'])
    WHEN col IN ('b', 'last') THEN one(ARRAY['-2147483648', '-1', '0', '1', '2', '7', '100', '2147483647'])
    WHEN col = 'c' THEN one(ARRAY['-9223372036854775808', '-1', '0', '1', '2', '5000000000', '9223372036854775807', '9223372036854775806'])
    -- 0 of several scales, digits of base 10000 at both ends of what fits into a fixed point, beyond it, and no numbers
    WHEN col = 'n' THEN quote_literal(one(ARRAY['0', '0.00', '-0.0000000000000000000', '1', '1.0', '1.000', '-1.5', '12345678901234567890', '99999999999999999999', '-99999999999999999999.9999999999999999',
       '0.0000000000000001', '9999.9999', '10000', '-10000.0001', '123456789.987654321', '1e15', '1e-9']
       || CASE WHEN random() < 0.1 THEN ARRAY['100000000000000000000', '1e40', '-1e40', '1e-20', '0.00000000000000001', '1e300', repeat('7', 300) || '.' || repeat('3', 40)] ELSE '{}' END
       || CASE WHEN random() < 0.02 THEN ARRAY['NaN', 'Infinity', '-Infinity'] ELSE '{}' END))
    WHEN col = 'm' THEN (floor(random() * 1999999) / 100 - 9999)::numeric(8, 2)::text
    WHEN col = 'd' THEN quote_literal(one(ARRAY['-infinity', '2020-01-01', '2024-02-29', 'infinity', '4713-01-01 BC']))
    WHEN col IN ('ts', 'tz') THEN quote_literal(one(ARRAY['-infinity', '2020-01-01 00:00', '2024-02-29 12:00:00.5', 'infinity']))
    WHEN col = 'tm' THEN quote_literal(one(ARRAY['00:00', '12:34:56', '24:00']))
    WHEN col = 'mo' THEN quote_literal(one(ARRAY['-12.34', '0', '99.99']))
    WHEN col = 'e' THEN one(ARRAY['true', 'false'])
    WHEN col = 'f' THEN one(ARRAY['0', '1.5', '''NaN''', '0.1'])
    ELSE quote_literal(one(ARRAY['', 'a', 'ab', 'abc'])) END END $$;
-- With many or no NULLs: a row without has its columns at fixed places.
CREATE FUNCTION one_row(id int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('(%s, ''gone %s'', %s)', id, id, string_agg(value(col, nulls), ', ' ORDER BY k))
  FROM unnest(ARRAY['a', 'b', 'c', 'n', 'm', 'd', 'ts', 'tz', 'tm', 'mo', 'e', 'f', 't', 'last']) WITH ORDINALITY u (col, k), (SELECT CASE WHEN random() < 0.5 THEN 0 ELSE 0.3 END AS nulls) x $$;
CREATE FUNCTION number(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF depth = 0 OR random() < 0.4 THEN RETURN one(ARRAY['a', 'b', 'c', 'last', 'young', '1', '2', '-1', '7', 'NULL::int4']); END IF;
  RETURN format('(%s %s %s)', number(depth - 1), one(ARRAY['+', '-', '*', '/', '%']), number(depth - 1));
END $$;
CREATE FUNCTION aggregate() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random(); found text;
BEGIN
  found := CASE
    WHEN kind < 0.08 THEN 'count(*)'
    WHEN kind < 0.18 THEN format('count(%s)', one(ARRAY['id', 'a', 'n', 't', 'f', 'last', 'young', '1', 'NULL', 'b + 1']))
    WHEN kind < 0.48 THEN format('%s(%s)', one(ARRAY['sum', 'avg', 'min', 'max']), one(ARRAY['a', 'b', 'c', 'n', 'm', 'last', 'young', 'younger']))
    WHEN kind < 0.62 THEN format('%s(%s)', one(ARRAY['sum', 'avg', 'min', 'max']), number(2))
    WHEN kind < 0.80 THEN format('%s(%s)', one(ARRAY['min', 'max']), one(ARRAY['d', 'ts', 'tz', 'tm', 'mo', 'm', 'n']))
    WHEN kind < 0.88 THEN format('%s(%s)', one(ARRAY['bool_and', 'bool_or', 'every']), one(ARRAY['e', 'e', 'b > 0']))
    -- core's
    ELSE one(ARRAY['sum(f)', 'max(t)', 'count(DISTINCT b)', 'sum(mo)', 'string_agg(t, '','' ORDER BY id)', 'sum(n * 2)', 'max(f)', 'stddev(b)']) END;
  IF random() < 0.15 THEN found := format('%s FILTER (WHERE %s)', found, one(ARRAY['e', 'b > 1', 'a % 2 = 1', 'n > 0', 'young IS NULL', 'c / a > 0'])); END IF;
  RETURN found;
END $$;
CREATE FUNCTION condition() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT one(ARRAY['true', 'true', 'true', 'id BETWEEN 20 AND 90', 'id < 0', 'b > 0', 'a % 2 = 1 OR b IS NULL', 'n > 0', 'e', 'NOT e', 'f > 1', 't LIKE ''a%''', 'young IS NULL', 'younger = 5', 'id = 7',
    'id = ANY (''{1,5,9,200}'')', 'c / a > 0', 'random() >= 0', 'a IS NOT NULL AND n < 100', 'b + a > 5', 'd >= ''2020-01-01'' AND t <> ''ab''', 'id < 100 AND f < 2', 'm < 100 AND young = 3']) $$;
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  EXECUTE statement INTO result;
  RETURN result;
EXCEPTION WHEN OTHERS THEN RETURN 'error ' || SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE TABLE differences (statement text, heap text, mot text);
CREATE PROCEDURE compare(statements int) LANGUAGE plpgsql AS $$
DECLARE statement text; heap text; ours text;
BEGIN
  FOR i IN 1..statements LOOP
    SELECT format('SELECT (%s)::text FROM (SELECT %s FROM TABLE WHERE %s%s) x', 'x',
      string_agg(format('%s AS c%s', aggregate(), k), ', '), condition(), CASE WHEN random() < 0.1 THEN ' HAVING count(*) > 10' ELSE '' END)
    INTO statement FROM generate_series(1, 1 + floor(random() * 4)::int) k;
    heap := outcome(replace(statement, 'TABLE', 'heap'));
    ours := outcome(replace(statement, 'TABLE', 'mot'));
    IF heap IS DISTINCT FROM ours THEN INSERT INTO differences VALUES (statement, heap, ours); END IF;
  END LOOP;
END $$;
-- By groups; what comes of them, in one order.
CREATE PROCEDURE compare_groups(statements int) LANGUAGE plpgsql AS $$
DECLARE statement text; heap text; ours text; keys text;
BEGIN
  FOR i IN 1..statements LOOP
    keys := one(ARRAY['a', 'b', 'c', 'd', 'ts', 'tz', 'e', 'young', 'id % 10', 'id', 'a, e', 'b, d', 'e, id / 50', 'a, b, c', 't', 'f', 'b % a', 'c, younger']);
    SELECT format('SELECT string_agg(x::text, %L ORDER BY x::text COLLATE "C") FROM (SELECT %s%s FROM TABLE WHERE %s GROUP BY %s%s) x', '; ', CASE WHEN random() < 0.9 THEN keys || ', ' ELSE '' END,
      string_agg(format('%s AS c%s', aggregate(), k), ', '), condition(), keys, CASE WHEN random() < 0.2 THEN ' HAVING count(*) > 5' ELSE '' END)
    INTO statement FROM generate_series(1, 1 + floor(random() * 3)::int) k;
    heap := outcome(replace(statement, 'TABLE', 'heap'));
    ours := outcome(replace(statement, 'TABLE', 'mot'));
    -- Which of two errors comes first is the hash's affair there.
    IF heap IS DISTINCT FROM ours AND NOT (heap LIKE 'error %' AND ours LIKE 'error %') THEN INSERT INTO differences VALUES (statement, heap, ours); END IF;
  END LOOP;
END $$;
CREATE PROCEDURE fill(first int, last int) LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  FOR i IN first..last LOOP
    r := one_row(i);
    EXECUTE 'INSERT INTO heap VALUES ' || r;
    EXECUTE 'INSERT INTO mot VALUES ' || r;
  END LOOP;
END $$;
-- Over no rows, rows of before columns were added and dropped, and of after.
ALTER TABLE heap ADD young int;
ALTER TABLE mot ADD young int;
ALTER TABLE heap ADD younger int8 DEFAULT 5;
ALTER TABLE mot ADD younger int8 DEFAULT 5;
CALL compare(60);
CALL compare_groups(30);
SELECT * FROM differences;
ALTER TABLE heap DROP young, DROP younger;
ALTER TABLE mot DROP young, DROP younger;
CALL fill(1, 90);
ALTER TABLE heap DROP gone, ADD young int DEFAULT 3, ADD younger int8 DEFAULT 5;
ALTER TABLE mot DROP gone, ADD young int DEFAULT 3, ADD younger int8 DEFAULT 5;
CREATE OR REPLACE FUNCTION one_row(id int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('(%s, %s, 1, 2)', id, string_agg(value(col, nulls), ', ' ORDER BY k))
  FROM unnest(ARRAY['a', 'b', 'c', 'n', 'm', 'd', 'ts', 'tz', 'tm', 'mo', 'e', 'f', 't', 'last']) WITH ORDINALITY u (col, k), (SELECT CASE WHEN random() < 0.5 THEN 0 ELSE 0.3 END AS nulls) x $$;
CALL compare(100);
CALL fill(91, 200);
CALL compare(400);
CALL compare_groups(400);
SET plan_cache_mode = force_generic_plan;
SET mot.compiled_statements = always;
CALL compare(150);
CALL compare_groups(150);
RESET mot.compiled_statements;
RESET plan_cache_mode;
SELECT * FROM differences;
-- The same numbers all over again: sums beyond 64 bits, and fixed points that overflow.
INSERT INTO heap SELECT 1000 + k, 1, 2147483647, 9223372036854775807, 99999999999999999999.9999999999999999, 999999.99 FROM generate_series(1, 2000) k;
INSERT INTO mot SELECT * FROM heap WHERE id > 1000;
SELECT sum(a), sum(b), sum(c), avg(c), sum(n), avg(n), sum(m), max(n), min(n) FROM heap WHERE id > 1000;
SELECT sum(a), sum(b), sum(c), avg(c), sum(n), avg(n), sum(m), max(n), min(n) FROM mot WHERE id > 1000;
SELECT count(c - 1), count(c - 1) FILTER (WHERE id % 2 = 0) FROM heap WHERE id > 1000;
SELECT count(c - 1), count(c - 1) FILTER (WHERE id % 2 = 0) FROM mot WHERE id > 1000;
-- Smallest and largest values after one that no fixed point holds, and of such alone.
UPDATE heap SET n = CASE id WHEN 1001 THEN 1e30 WHEN 1002 THEN -1e30 WHEN 1003 THEN 1e-30 ELSE id END WHERE id > 1000;
UPDATE mot SET n = CASE id WHEN 1001 THEN 1e30 WHEN 1002 THEN -1e30 WHEN 1003 THEN 1e-30 ELSE id END WHERE id > 1000;
SELECT max(n), min(n), max(n) FILTER (WHERE id > 1001), min(n) FILTER (WHERE id <> 1002), min(n) FILTER (WHERE id < 1002), max(n) FILTER (WHERE id = 1002), min(n) FILTER (WHERE id > 1003) FROM heap WHERE id > 1000;
SELECT max(n), min(n), max(n) FILTER (WHERE id > 1001), min(n) FILTER (WHERE id <> 1002), min(n) FILTER (WHERE id < 1002), max(n) FILTER (WHERE id = 1002), min(n) FILTER (WHERE id > 1003) FROM mot WHERE id > 1000;
CALL compare(100);
SELECT * FROM differences;
-- Sums that leave the range of numeric on the way, and such as end beyond it.
CREATE FUNCTION sums(source text, filter text) RETURNS text LANGUAGE sql AS $$
  SELECT outcome(format('SELECT concat_ws('','', md5(sum(n)::text), scale(sum(n)), sum(n) > 0, md5(avg(n)::text)) FROM %s WHERE id > 1000 AND %s', source, filter)) $$;
UPDATE heap SET n = CASE WHEN id <= 1100 THEN 9.5e131071 + 0.125 WHEN id <= 1200 THEN -9.75e131071 WHEN id <= 1210 THEN 3e131071 WHEN id = 1300 THEN 'NaN' WHEN id = 1301 THEN '-Infinity' ELSE 1.5 END WHERE id > 1000;
UPDATE mot SET n = CASE WHEN id <= 1100 THEN 9.5e131071 + 0.125 WHEN id <= 1200 THEN -9.75e131071 WHEN id <= 1210 THEN 3e131071 WHEN id = 1300 THEN 'NaN' WHEN id = 1301 THEN '-Infinity' ELSE 1.5 END WHERE id > 1000;
SELECT filter, sums('heap', filter) = sums('mot', filter) AS is_same, length(sums('mot', filter)) AS length FROM unnest(ARRAY['id < 1300', 'id < 1206', 'id < 1200', 'id < 1201 AND id <> 1001', 'id IN (1001, 1101, 1201)', 'id IN (1001, 1002)', 'id IN (1101, 1102)',
  'id IN (1001, 1002, 1101)', 'id IN (1001, 1101, 1102)', 'id IN (1201, 1202, 1203)', 'id IN (1201, 1202, 1203, 1204)', 'id < 1110 OR id BETWEEN 1202 AND 1205', 'id <= 1300', 'id < 1110 OR id = 1301', 'id >= 1300']) filter;
DELETE FROM heap WHERE id > 1000;
DELETE FROM mot WHERE id > 1000;
ALTER TABLE mot RENAME TO m;
ANALYZE m;

-- What is planned so.
-- Without what versions of the server write differently.
CREATE FUNCTION plan(statement text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, statement) LOOP
    RETURN NEXT regexp_replace(regexp_replace(line, '(rows=\d+)\.00', '\1'), ',\s*"Disabled": false', '', 'g');
  END LOOP;
END $$;
SET enable_indexscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(b), min(c) FROM m WHERE b % 10 = 3;
EXPLAIN (COSTS OFF, VERBOSE) SELECT sum(b) + 1, avg(m) * 2, count(*) FILTER (WHERE e), 'x' FROM m WHERE id BETWEEN 5 AND 9 HAVING max(b) > 1;
SELECT plan('SELECT count(*), sum(b) FROM m', 'COSTS OFF, FORMAT json');
SELECT plan('SELECT count(b) FROM m WHERE id <= 200 AND t = ''ab'' AND f >= 0', 'COSTS OFF, ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF');
RESET enable_indexscan;
-- Core's plans of these are not the same in all versions.
CREATE FUNCTION plan_of(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || statement; END $$;
SELECT bool_or(line LIKE '%Aggregates:%') AS inside FROM plan_of($$SELECT max(id) FROM m$$) line;
-- What is not.
SELECT bool_or(line LIKE '%Aggregates:%') AS inside FROM plan_of($$SELECT count(DISTINCT b) FROM m$$) line;
EXPLAIN (COSTS OFF) SELECT sum(f) FROM m;
EXPLAIN (COSTS OFF) SELECT a.x FROM (SELECT count(*) AS x FROM m, heap) a;
EXPLAIN (COSTS OFF) SELECT count(*) FROM m WHERE current_setting('x.y', true) IS NULL;
EXPLAIN (COSTS OFF) SELECT count(*), max(ctid), max(tableoid) FROM m;
SET mot.compiled_statements = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(b) FROM m;
RESET mot.compiled_statements;

-- By groups.
EXPLAIN (COSTS OFF) SELECT e, count(*), sum(b) + 1 FROM m WHERE id > 3 GROUP BY e HAVING count(*) > 1 ORDER BY e;
SELECT plan('SELECT count(*) FROM m GROUP BY id % 10, e', 'COSTS OFF, ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF');
SELECT id % 4 AS k, count(*), sum(id) FROM m GROUP BY k ORDER BY k LIMIT 3;
SELECT e, id % 2, count(*), min(id) FROM m WHERE id < 10 GROUP BY 1, 2 ORDER BY 1, 2;
SELECT sum(c), count(*) FROM (SELECT id % 7 AS k, count(*) AS c FROM m GROUP BY k) x;
SELECT h.id, x.* FROM heap h, LATERAL (SELECT e, count(*) FROM m WHERE m.id > h.id GROUP BY e, a HAVING count(*) > 0) x LIMIT 0;
SELECT h.id, (SELECT string_agg(x::text, ' ' ORDER BY x) FROM (SELECT m.id % 2, count(*) FROM m WHERE m.id <= h.id GROUP BY 1) x) FROM heap h WHERE id < 4 ORDER BY 1;
-- core's: too many groups, too many columns, rows that may be others the next time
EXPLAIN (COSTS OFF) SELECT a, b, c, count(*) FROM m GROUP BY a, b, c;
EXPLAIN (COSTS OFF) SELECT t, count(*) FROM m GROUP BY t;
EXPLAIN (COSTS OFF) SELECT e, count(*) FROM m WHERE random() < 2 GROUP BY e;
SELECT bool_or(line LIKE '%Aggregates:%') AS inside FROM plan_of($$SELECT e, count(*) FROM m WHERE id > (SELECT min(h.id) FROM heap h WHERE h.a = m.a) GROUP BY e$$) line;
-- More groups than were expected, and than fit: the rows are read several times.
CREATE TABLE many (k int8, v int, n numeric) USING mot WITH (autovacuum_enabled = off);
INSERT INTO many SELECT i % 5, i, i FROM generate_series(1, 100) i;
ANALYZE many;
INSERT INTO many SELECT i % 6007 * 1000003::int8, i, i FROM generate_series(1, 20000) i;
INSERT INTO many SELECT NULL, i, 1e30 FROM generate_series(1, 3) i;
CREATE TABLE many_heap AS SELECT * FROM many;
SET work_mem = '64kB';
-- Eight times at most, as often as EXPLAIN says; less often where more fits.
SELECT substring(p FROM 'Passes.*') FROM plan_of('SELECT k, count(*), sum(v), sum(n) FROM many GROUP BY k') p WHERE p LIKE '%Passes%';
SELECT count(*) FROM plan_of('SELECT k, count(*), sum(v), sum(n) FROM many GROUP BY k') p WHERE p ~ 'MOT Scan. on many .*loops=8';
SET work_mem = '384kB';
SELECT substring(p FROM 'Passes.*') ~ '[2-5]$' AS some FROM plan_of('SELECT k, count(*), sum(v), sum(n) FROM many GROUP BY k') p WHERE p LIKE '%Passes%';
(SELECT k, count(*), sum(v), max(n) FROM many GROUP BY k EXCEPT SELECT k, count(*), sum(v), max(n) FROM many_heap GROUP BY k) UNION ALL
(SELECT k, count(*), sum(v), max(n) FROM many_heap GROUP BY k EXCEPT SELECT k, count(*), sum(v), max(n) FROM many GROUP BY k);
SET work_mem = '64MB';
SELECT count(*) AS passes FROM plan_of('SELECT k, count(*), sum(v), sum(n) FROM many GROUP BY k') p WHERE p LIKE '%Passes%';
-- Numerics beside the groups count, too.
SET work_mem = '1MB';
CREATE TABLE long (k int, n numeric) USING mot;
INSERT INTO long SELECT i % 1000, repeat('7', 6000)::numeric + i FROM generate_series(1, 2000) i;
SELECT count(*) > 0 AS several_times FROM plan_of('SELECT k % 1000, max(n) FROM long GROUP BY k % 1000') p WHERE p LIKE '%Passes%';
SELECT count(*), sum(k), sum(m - s) FROM (SELECT k % 1000 AS k, max(n) AS m, min(n) AS s FROM long GROUP BY k % 1000) x;
DROP TABLE long;
SET work_mem = '64kB';
SELECT count(*), count(DISTINCT k), sum(c), sum(s), sum(n) FROM (SELECT k, count(*) AS c, sum(v) AS s, sum(n) AS n FROM many GROUP BY k) x;
(SELECT k, count(*), sum(v), max(n) FROM many GROUP BY k EXCEPT SELECT k, count(*), sum(v), max(n) FROM many_heap GROUP BY k) UNION ALL
(SELECT k, count(*), sum(v), max(n) FROM many_heap GROUP BY k EXCEPT SELECT k, count(*), sum(v), max(n) FROM many GROUP BY k);
SET plan_cache_mode = force_generic_plan;
PREPARE grouped(int) AS SELECT count(*), sum(c), sum(s) FROM (SELECT k, count(*) AS c, sum(n) AS s FROM many WHERE v > $1 GROUP BY k HAVING count(*) > 2) x;
EXECUTE grouped(300);
EXECUTE grouped(300);
EXECUTE grouped(18000);
EXECUTE grouped(30000);
EXECUTE grouped(0);
CREATE FUNCTION grouped_up(low int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE total bigint := 0; r record;
BEGIN
  FOR i IN 1 .. 4 LOOP
    FOR r IN SELECT k, count(*) AS c FROM am_aggregates.many WHERE v > low GROUP BY k LOOP
      EXIT WHEN i = 2;
      total := total + r.c;
    END LOOP;
  END LOOP;
  RETURN total;
END $$;
SELECT grouped_up(19000), grouped_up(0);
-- Under a cursor, what a condition looks at can change between two passes. Where it can, there is one pass: core's.
SET my.least = 0;
CREATE FUNCTION inside(statement text) RETURNS boolean LANGUAGE sql AS $$ SELECT bool_or(line LIKE '%Aggregates:%') FROM am_aggregates.plan(statement) line $$;
SELECT inside('SELECT k, count(*) FROM many WHERE v >= 0 GROUP BY k') AS immutable, inside('SELECT k, count(*) FROM many WHERE v >= current_setting(''my.least'')::int GROUP BY k') AS setting,
  inside('SELECT e, count(*) FROM m WHERE tz > d GROUP BY e') AS zone, inside('SELECT e, count(*) FROM m WHERE tz > now() GROUP BY e') AS now, inside('SELECT e, count(*) FROM m WHERE xmax = 0 GROUP BY e') AS mark,
  inside('SELECT e, count(*) FILTER (WHERE tz > d) FROM m GROUP BY e') AS filter, inside('SELECT (tz > d), count(*) FROM m GROUP BY 1') AS key, inside('SELECT e, count(*) FROM m WHERE tableoid > 0 GROUP BY e') AS same;
CREATE FUNCTION fetched(relation text, condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c refcursor; r record; groups bigint := 0; rows_ numeric := 0; sums numeric := 0;
BEGIN
  SET LOCAL my.least = 0;
  OPEN c FOR EXECUTE format('SELECT k, count(*) AS c, sum(v) AS s FROM am_aggregates.%I WHERE %s GROUP BY k', relation, condition);
  LOOP
    FETCH c INTO r;
    EXIT WHEN NOT FOUND;
    groups := groups + 1;
    rows_ := rows_ + r.c;
    sums := sums + r.s;
    SET LOCAL my.least = 1000000;
  END LOOP;
  RETURN format('%s groups of %s rows, %s', groups, rows_, sums);
END $$;
SELECT fetched('many_heap', 'v >= 0') AS heap, fetched('many', 'v >= 0') AS mot;
SELECT fetched('many', 'v >= current_setting(''my.least'')::int') <> fetched('many_heap', 'v >= 0') AS differs;
-- A variable that changes while the groups of its first value are given.
CREATE FUNCTION varied(low int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE groups bigint := 0; total numeric := 0; r record; c CURSOR (lowest int) FOR SELECT k, count(*) AS c FROM am_aggregates.many WHERE v > lowest AND v > low GROUP BY k;
BEGIN
  FOR r IN SELECT k, count(*) AS c FROM am_aggregates.many WHERE v > low GROUP BY k LOOP
    low := 10000000;
    groups := groups + 1;
    total := total + r.c;
  END LOOP;
  low := 0;
  FOR r IN c (10000) LOOP
    low := 10000000;
    groups := groups + 1;
    total := total + r.c;
  END LOOP;
  RETURN format('%s groups of %s rows', groups, total);
END $$;
SELECT varied(0);
-- A parameter from a join, for each of whose values the groups are left half given, or are all given.
SELECT h.id, x.* FROM (VALUES (0), (19000), (5)) h (id), LATERAL (SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM many WHERE v > h.id GROUP BY k) x) x ORDER BY 1;
SELECT h.id, EXISTS (SELECT k FROM many WHERE v > h.id GROUP BY k HAVING count(*) > 2), (SELECT count(*) FROM (SELECT k FROM many WHERE v > h.id GROUP BY k LIMIT 2000) x) FROM (VALUES (0), (19000), (5)) h (id) ORDER BY 1;
RESET plan_cache_mode;
RESET work_mem;
DROP TABLE many;
DROP TABLE many_heap;

-- In every place.
SELECT h.id, (SELECT sum(m.id) FROM m WHERE m.id < h.id), (SELECT count(*) FROM m WHERE m.id % 5 = h.id) FROM heap h WHERE h.id BETWEEN 3 AND 5 ORDER BY 1;
SELECT h.id, x.s FROM heap h, LATERAL (SELECT sum(id) AS s FROM m WHERE m.id <= h.id) x WHERE h.id < 4 ORDER BY 1;
SELECT h.id, x.s FROM heap h, LATERAL (SELECT sum(id) + h.id AS s FROM m WHERE m.id > 0 HAVING count(*) > h.id) x WHERE h.id IN (1, 2, 500) ORDER BY 1;
WITH x AS (SELECT count(*) AS c FROM m) SELECT x.c, y.c FROM x, x y;
WITH x AS MATERIALIZED (SELECT count(*) AS c FROM m WHERE id < 10) SELECT * FROM x UNION ALL SELECT count(*) FROM m UNION SELECT sum(id) FROM m WHERE id < 10 ORDER BY 1;
SELECT EXISTS (SELECT count(*) FROM m WHERE id < 0), EXISTS (SELECT count(*) FROM m WHERE id < 0 HAVING count(*) > 0);
SELECT rank() OVER (ORDER BY count(*)), sum(sum(id)) OVER (), count(*) FROM m;
SELECT count(*) FROM m LIMIT 0;
SELECT count(*) FROM m OFFSET 1;
SELECT DISTINCT count(*) FROM m ORDER BY 1;
SELECT count(*), generate_series(1, 2) FROM m;
SELECT count(*) FROM m HAVING false;
SELECT count(*) FROM m WHERE false;
SELECT 1 FROM m HAVING count(*) = 200;
SELECT count(*) FROM heap WHERE id = (SELECT min(id) FROM m WHERE id > 5 AND b IS NOT DISTINCT FROM b);
UPDATE heap SET t = (SELECT count(*) FROM m WHERE m.id <= heap.id)::text WHERE id IN (3, 4) RETURNING id, t;
INSERT INTO heap (id, b) SELECT 5000, count(*) FROM m RETURNING id, b;
DELETE FROM heap WHERE id = 5000;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT count(*), sum(id) FROM m;
FETCH c;
INSERT INTO m (id) VALUES (3000);
FETCH c;
FETCH BACKWARD c;
CLOSE c;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM m;
FETCH ALL c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT count(*) FROM m;
FETCH c;
UPDATE m SET b = 1 WHERE CURRENT OF c;
ROLLBACK;
-- Conditions on system columns, by a row's place, and none at all.
SELECT count(*), sum(id) FROM m WHERE tableoid = 'm'::regclass AND ctid IS NOT NULL AND xmin IS NOT NULL AND id < 4;
SELECT count(*), sum(id), e FROM m WHERE ctid = (SELECT ctid FROM m WHERE id = 7) GROUP BY e;
SELECT x.id, (SELECT count(*) FROM m WHERE m.e = x.e) AS c FROM (SELECT id, e FROM m WHERE id < 4) x ORDER BY 1;
-- SELECT of the columns is asked for; core does.
CREATE ROLE am_aggregates_user;
GRANT USAGE ON SCHEMA am_aggregates TO am_aggregates_user;
GRANT SELECT (id, a) ON m TO am_aggregates_user;
SET ROLE am_aggregates_user;
SELECT sum(id), count(a) FROM m;
SELECT sum(b) FROM m;
SELECT count(*) FROM m WHERE b > 0;
RESET ROLE;
-- EXECUTE of an aggregate, and of what it consists of.
PREPARE summed AS SELECT sum(id), count(*) FROM m;
EXECUTE summed;
EXECUTE summed;
EXECUTE summed;
BEGIN;
REVOKE EXECUTE ON FUNCTION pg_catalog.sum(int4) FROM PUBLIC;
SET LOCAL ROLE am_aggregates_user;
SAVEPOINT s;
SELECT sum(id), count(*) FROM m;
ROLLBACK TO s;
EXPLAIN SELECT sum(id), count(*) FROM m;
ROLLBACK TO s;
EXECUTE summed;
ROLLBACK TO s;
SELECT count(*) FROM m;
ROLLBACK;
BEGIN;
ALTER AGGREGATE pg_catalog.sum(int4) OWNER TO am_aggregates_user;
REVOKE EXECUTE ON FUNCTION pg_catalog.int4_sum(int8, int4) FROM PUBLIC;
SAVEPOINT s;
SELECT sum(id) FROM m;
ROLLBACK;
EXECUTE summed;
-- Others' aggregates and operators of the same names.
CREATE FUNCTION never(int8, int4) RETURNS int8 LANGUAGE sql AS 'SELECT -1::int8';
CREATE AGGREGATE sum(int4) (SFUNC = never, STYPE = int8, INITCOND = '0');
CREATE FUNCTION modulo(int4, int4) RETURNS int4 LANGUAGE sql AS 'SELECT 0';
CREATE OPERATOR % (LEFTARG = int4, RIGHTARG = int4, FUNCTION = modulo);
SET search_path = am_aggregates, pg_catalog;
SELECT sum(id), pg_catalog.sum(id), pg_catalog.sum(id % 2), pg_catalog.sum(id OPERATOR(pg_catalog.%) 2) FROM m;
EXECUTE summed;
SET search_path = am_aggregates;
DROP OPERATOR am_aggregates.% (int4, int4);
DROP AGGREGATE am_aggregates.sum(int4);
-- A view that keeps its rows from leaky functions.
CREATE VIEW barred WITH (security_barrier) AS SELECT id, b FROM m WHERE id < 4;
CREATE FUNCTION tell(v int) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE WARNING 'saw %', v; RETURN true; END $$;
SELECT count(*), sum(id) FROM barred WHERE tell(id);
-- Rows of the own transaction, and those that went with a savepoint.
BEGIN;
INSERT INTO m (id, b) VALUES (4000, 1);
SELECT count(*), max(id) FROM m WHERE id > 199 AND id + 0 > 0;
SAVEPOINT s;
UPDATE m SET b = 5 WHERE id = 4000;
DELETE FROM m WHERE id = 200;
SELECT count(*), sum(id), sum(b) FILTER (WHERE id = 4000) FROM m WHERE id > 199;
ROLLBACK TO s;
SELECT count(*), sum(id), sum(b) FILTER (WHERE id = 4000) FROM m WHERE id > 199;
-- A command does not see what it writes.
CREATE FUNCTION adds(v int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO am_aggregates.m (id) VALUES (v + 10000); RETURN true; END $$;
SELECT count(*) FROM m WHERE id > 150 AND adds(id);
SELECT count(*) FROM m WHERE id > 150;
ROLLBACK;
-- SERIALIZABLE: what an aggregate reads is locked as a scan locks it.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*), sum(id) FROM m;
SELECT locktype, relation::regclass FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() ORDER BY 1, 2;
COMMIT;
-- Plans follow the table.
SET plan_cache_mode = force_generic_plan;
PREPARE ranged(int, int) AS SELECT count(*), sum(b), count(t) FROM m WHERE id BETWEEN $1 AND $2;
EXECUTE ranged(3, 20);
EXECUTE ranged(3, 20);
EXECUTE ranged(20, 3);
EXECUTE ranged(NULL, 3);
ALTER TABLE m ADD after_t int DEFAULT 1, DROP f;
EXECUTE ranged(3, 20);
EXECUTE ranged(3, 20);
BEGIN;
TRUNCATE m;
EXECUTE ranged(3, 20);
ROLLBACK;
EXECUTE ranged(3, 20);
SET mot.compiled_statements = off;
EXECUTE ranged(3, 20);
DEALLOCATE ranged;
PREPARE ranged(int, int) AS SELECT count(*), sum(b), count(t) FROM m WHERE id BETWEEN $1 AND $2;
EXECUTE ranged(3, 20);
RESET mot.compiled_statements;
-- In a function's loop, as kept states, with an error in between.
CREATE FUNCTION summed_up(low int, high int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE s numeric; k bigint; told text := '';
BEGIN
  FOR i IN low .. high LOOP
    BEGIN
      SELECT sum(id / (i - 3)), count(*) INTO s, k FROM am_aggregates.m WHERE id BETWEEN i AND i + 10;
      told := told || format('%s %s; ', s, k);
    EXCEPTION WHEN division_by_zero THEN told := told || 'division by zero; ';
    END;
  END LOOP;
  RETURN told;
END $$;
SELECT summed_up(1, 6);
SELECT summed_up(2, 4);
-- An older snapshot, and a table that is emptied beside a cursor.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM m;
DECLARE c CURSOR FOR SELECT count(*), sum(id) FROM m;
DELETE FROM m WHERE id > 100;
SELECT count(*) FROM m;
FETCH c;
ROLLBACK;
-- Given up within the scan.
SET statement_timeout = '100ms';
SELECT count(*) FROM m WHERE pg_sleep(id * 0.01) IS NOT NULL AND id > 0;
SELECT sum(g + m.id) FROM generate_series(1, 100000000) g, m;
RESET statement_timeout;
-- Parallel workers add up what they scan, where what they hand on is a plain value; else core's nodes do, or one process.
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET max_parallel_workers_per_gather = 2;
INSERT INTO m (id, a, b, e) SELECT k, k % 100, k, k % 2 = 0 FROM generate_series(10001, 60000) k;
ANALYZE m;
EXPLAIN (COSTS OFF) SELECT count(*), sum(b), min(a), bool_or(e) FROM m WHERE id % 10 = 3 HAVING count(*) > 0;
SELECT count(*), sum(b), min(a), bool_or(e), count(n), max(id) - 1 FROM m WHERE id % 10 = 3 AND id > 200 HAVING count(*) > 0;
SELECT count(*), sum(b), max(a) FROM m WHERE id % 10 = 3 AND id < 0;
EXPLAIN (COSTS OFF) SELECT count(*), sum(c) FROM m WHERE id % 10 = 3;
SELECT count(*), sum(c) IS NULL FROM m WHERE id % 10 = 3 AND id > 200;
BEGIN;
UPDATE m SET b = 0 WHERE id BETWEEN 10001 AND 10010;
SELECT count(*), sum(b) FROM m WHERE id > 10000;
SELECT g, (SELECT count(*) FROM m WHERE id % 7 = g) FROM generate_series(0, 2) g;
ROLLBACK;
SET enable_material = off;
SELECT g, c FROM generate_series(0, 2) g, LATERAL (SELECT count(*) AS c FROM m WHERE id >= g AND id % 7 = 0) x ORDER BY g;
RESET enable_material;
RESET max_parallel_workers_per_gather;
RESET parallel_tuple_cost;
RESET parallel_setup_cost;
RESET min_parallel_table_scan_size;
DELETE FROM m WHERE id > 10000;
-- Inheritance: a table and its children are no single scan.
CREATE TABLE child () INHERITS (m) USING mot;
INSERT INTO child (id, t) VALUES (7000, 'child');
SELECT count(*), max(id) FROM m;
SELECT count(*), max(id) FROM ONLY m;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM ONLY m;
RESET plan_cache_mode;
SET client_min_messages = error;
DROP OWNED BY am_aggregates_user;
DROP ROLE am_aggregates_user;
DROP SCHEMA am_aggregates CASCADE;
