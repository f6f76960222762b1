-- Conditions that a scan evaluates over rows as they lie in memory, beside a heap table with the same rows, whose conditions core
-- evaluates. Nothing is printed of random conditions but what differs: rows, or the error.
SET jit = off;
SET client_min_messages = warning;
SELECT setseed(0.2718);
CREATE TABLE fl_heap (id int, gone text, a int2, b int4, c int8, d date, ts timestamp, tz timestamptz, tm time, e bool, o oid, ch "char", f float8,
  t text, v varchar(12), p char(5), w text COLLATE "C", last int4);
CREATE FOREIGN TABLE fl_mot (id int, gone text, a int2, b int4, c int8, d date, ts timestamp, tz timestamptz, tm time, e bool, o oid, ch "char", f float8,
  t text, v varchar(12), p char(5), w text COLLATE "C", last int4) SERVER mot;

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
ALTER FOREIGN TABLE fl_mot ADD COLUMN young int DEFAULT 7;
CALL fl_run(500);
ALTER TABLE fl_heap DROP COLUMN gone;
ALTER FOREIGN TABLE fl_mot DROP COLUMN gone;
INSERT INTO fl_heap SELECT 100 + n, 1, 2, 3, NULL, NULL, NULL, NULL, true, 1, 'a', 1, 'abc', 'ab', 'ab', 'b', 4, 5 FROM generate_series(1, 3) n;
INSERT INTO fl_mot SELECT 100 + n, 1, 2, 3, NULL, NULL, NULL, NULL, true, 1, 'a', 1, 'abc', 'ab', 'ab', 'b', 4, 5 FROM generate_series(1, 3) n;
CALL fl_run(1000);
SELECT * FROM fl_differences;
SELECT count(*) > 20 AS has_rows FROM fl_mot;

-- the order of conditions decides whether there is an error
CREATE FOREIGN TABLE fl (id int PRIMARY KEY, a int, t text) SERVER mot;
INSERT INTO fl SELECT n, n % 5, 'text ' || n FROM generate_series(1, 100) n;
SELECT count(*) FROM fl WHERE a <> 0 AND 10 / a > 3;
SELECT count(*) FROM fl WHERE 10 / a > 3 AND a <> 0;
SELECT count(*) FROM fl WHERE a = 1 AND id + 2147483600 > 0;
SELECT count(*) FROM fl WHERE a = 1 AND id + 2147483500 > 0;
-- a condition that only core evaluates, behind one that is done here
SELECT count(*) FROM fl WHERE a = 1 AND length(t) = 7;
SELECT count(*) FROM fl WHERE a = 1 AND id IN (SELECT 6);

-- what EXPLAIN counts
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM fl WHERE a % 5 = 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM fl WHERE a = 3 AND length(t) = 7;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM fl WHERE id > 50 AND t LIKE '%1%' ORDER BY id DESC LIMIT 3;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM fl WHERE a = 3 AND a = 4;

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

-- many keys of a unique index at once
CREATE TABLE fl_keys_heap (a int, b int, t text, PRIMARY KEY (a, b));
CREATE FOREIGN TABLE fl_keys (a int, b int, t text, PRIMARY KEY (a, b)) SERVER mot;
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

DROP FUNCTION fl_one, fl_text, fl_value, fl_row, fl_number, fl_condition, fl_answer, fl_f, fl_g, fl_h, fl_unassigned;
DROP PROCEDURE fl_run, fl_fill, fl_run_keys;
DROP VIEW fl_view;
DROP FUNCTION fl_leak;
DROP TABLE fl_heap, fl_long, fl_differences, fl_keys_heap;
DROP FOREIGN TABLE fl_mot, fl, fl_keys;
