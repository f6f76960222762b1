-- Random conditions over random indexes, beside a heap table with the same rows: nothing is printed but what differs.
-- Conditions meet on the columns of one index in ways that nobody would write: several ranges of one column, arrays with NULLs, prefixes
-- beside ranges, integers of other widths, either direction, NULLs first and last.
SET jit = off;
SET client_min_messages = warning;
SELECT setseed(0.4711);
CREATE TABLE rc_heap (id int, a int, b text COLLATE "C", c numeric, d int8, e bool, f float8, g bpchar(3) COLLATE "C", h date);
CREATE FOREIGN TABLE rc_mot (id int, a int, b text COLLATE "C", c numeric, d int8, e bool, f float8, g bpchar(3) COLLATE "C", h date) SERVER mot;

-- a literal of a column's kind, from few values, so that conditions meet
CREATE FUNCTION rc_literal(col text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN random() < 0.05 THEN 'NULL' ELSE CASE col
    WHEN 'a' THEN (floor(random() * 9) - 3)::text || (ARRAY['', '', '', '::int8', '::int2'])[1 + floor(random() * 5)::int]
    WHEN 'b' THEN quote_literal((ARRAY['', 'a', 'ab', 'abc', 'abd', 'b', 'B', 'ä', 'a%', 'a_', chr(1), 'ab '])[1 + floor(random() * 12)::int]) || '::text'
    WHEN 'c' THEN quote_literal((ARRAY['-1', '0', '0.0', '1', '1.00', '1.5', '10', '1e20', 'NaN', 'Infinity', '-Infinity'])[1 + floor(random() * 11)::int]) || '::numeric'
    WHEN 'd' THEN (ARRAY['-5000000000', '-1', '0', '1', '5000000000'])[1 + floor(random() * 5)::int] || (ARRAY['::int8', '::int8', ''])[1 + floor(random() * 3)::int]
    WHEN 'e' THEN (ARRAY['true', 'false'])[1 + floor(random() * 2)::int]
    WHEN 'f' THEN quote_literal((ARRAY['-0', '0', '1', '-1', '1e300', 'NaN', 'Infinity', '-Infinity'])[1 + floor(random() * 8)::int]) || '::float8'
    WHEN 'g' THEN quote_literal((ARRAY['', ' ', 'a', 'a ', 'ab', 'abc', 'b'])[1 + floor(random() * 7)::int]) || '::bpchar'
    WHEN 'h' THEN quote_literal((ARRAY['-infinity', '2020-01-01', '2020-01-02', '2024-02-29', 'infinity'])[1 + floor(random() * 5)::int]) || '::date'
  END END $$;

CREATE FUNCTION rc_condition() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE col text := substr('aabbccdefgh', 1 + floor(random() * 11)::int, 1); kind float8 := random();
  op text := (ARRAY['=', '=', '<', '<=', '>', '>=', '<>'])[1 + floor(random() * 7)::int];
BEGIN
  RETURN CASE
    WHEN kind < 0.06 THEN col || ' IS NULL'
    WHEN kind < 0.12 THEN col || ' IS NOT NULL'
    WHEN kind < 0.16 AND col = 'e' THEN (ARRAY['e', 'NOT e', 'e IS TRUE', 'e IS NOT TRUE', 'e IS UNKNOWN'])[1 + floor(random() * 5)::int]
    WHEN kind < 0.30 AND col = 'b' THEN 'b ' || (ARRAY['LIKE ''a%''', 'LIKE ''ab%''', 'LIKE ''a\%%''', '^@ ''ab''', 'LIKE ''ab''', 'NOT LIKE ''a%''', 'LIKE ''a_c'''])[1 + floor(random() * 7)::int]
    WHEN kind < 0.45 THEN format('%s = ANY (ARRAY[%s, %s, %s])', col, rc_literal(col), rc_literal(col), rc_literal(col))
    WHEN kind < 0.50 THEN format('%s <> ALL (ARRAY[%s, %s])', col, rc_literal(col), rc_literal(col))
    WHEN kind < 0.56 THEN format('%s BETWEEN %s AND %s', col, rc_literal(col), rc_literal(col))
    WHEN kind < 0.60 THEN format('(a, b) %s (%s, %s)', op, rc_literal('a'), rc_literal('b'))
    WHEN kind < 0.64 THEN format('(%s %s %s OR %s)', col, op, rc_literal(col), 'a = ' || rc_literal('a'))
    WHEN kind < 0.70 THEN format('%s %s %s', rc_literal(col), op, col)
    ELSE format('%s %s %s', col, op, rc_literal(col))
  END;
END $$;

CREATE FUNCTION rc_row(id int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('(%s, %s)', id, string_agg(CASE WHEN random() < 0.1 THEN 'NULL' ELSE rc_literal(col) END, ', ' ORDER BY col))
  FROM unnest(ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) col $$;

-- one to three columns, each in a random direction
CREATE FUNCTION rc_columns() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT string_agg(col || direction, ', ') FROM (
    SELECT col, (ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])[1 + floor(random() * 4)::int] AS direction
    FROM unnest(ARRAY['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) col ORDER BY random() LIMIT 1 + floor(random() * 3)::int) s $$;

CREATE TABLE rc_differences (difference text);
CREATE PROCEDURE rc_run(sets int, statements int) LANGUAGE plpgsql AS $$
DECLARE command text; heap text; ours text; columns text; conditions text; indexes text; kind float8; next int := 1000;
BEGIN
  FOR i IN 1..sets LOOP
    DELETE FROM rc_heap;
    DELETE FROM rc_mot;
    FOR n IN 1..3 LOOP EXECUTE format('CREATE INDEX rc_%s ON rc_mot (%s)', n, rc_columns()); END LOOP;
    SELECT string_agg(pg_get_indexdef(indexrelid), E'\n  ') INTO indexes FROM pg_index WHERE indrelid = 'rc_mot'::regclass;
    FOR n IN 1..60 LOOP
      command := rc_row(n);
      EXECUTE 'INSERT INTO rc_heap VALUES ' || command;
      EXECUTE 'INSERT INTO rc_mot VALUES ' || command;
    END LOOP;
    FOR n IN 1..statements LOOP
      SELECT string_agg(rc_condition(), ' AND ') INTO conditions FROM generate_series(1, 1 + floor(random() * 4)::int);
      kind := random();
      columns := rc_columns();
      command := CASE
        WHEN kind < 0.6 THEN format('SELECT array_agg(id) FROM (SELECT id FROM %%s WHERE %s ORDER BY %s, id) s', conditions, columns)
        WHEN kind < 0.7 THEN format('SELECT array_agg(x ORDER BY x) FROM (SELECT concat_ws('','', %s) AS x FROM %%s WHERE %s ORDER BY %s LIMIT 3) s',
          -- equal values that are written in several ways come in any order
          replace(replace(regexp_replace(columns, ' (DESC|NULLS|FIRST|LAST)', '', 'g'), 'c', 'trim_scale(c)'), 'f', 'f + 0'), conditions, columns)
        WHEN kind < 0.75 THEN format('SELECT concat_ws('','', min(a), max(a), min(b), max(b), trim_scale(max(c)), min(h), count(*)) FROM %%s WHERE %s', conditions)
        WHEN kind < 0.85 THEN format('SELECT array_agg(t.id || ''/'' || u.id ORDER BY t.id, u.id) FROM %%1$s t JOIN %%1$s u ON t.%1$s = u.%1$s AND u.%2$s >= t.%2$s WHERE t.id < 20',
          substr('abcdefgh', 1 + floor(random() * 8)::int, 1), substr('abcdfgh', 1 + floor(random() * 7)::int, 1))
        WHEN kind < 0.93 THEN format('WITH w AS (UPDATE %%s SET %s = %s WHERE %s RETURNING id) SELECT array_agg(id ORDER BY id) FROM w',
          'a', rc_literal('a'), conditions)
        WHEN kind < 0.96 THEN format('WITH w AS (DELETE FROM %%s WHERE %s AND id %% 7 = 0 RETURNING id) SELECT array_agg(id ORDER BY id) FROM w', conditions)
        ELSE format('WITH w AS (INSERT INTO %%s VALUES %s RETURNING id) SELECT id FROM w', rc_row(next))
      END;
      next := next + 1;
      BEGIN EXECUTE format(command, 'rc_heap') INTO heap; EXCEPTION WHEN OTHERS THEN heap := SQLSTATE; END;
      BEGIN EXECUTE format(command, 'rc_mot') INTO ours; EXCEPTION WHEN OTHERS THEN ours := SQLSTATE; END;
      IF heap IS DISTINCT FROM ours THEN
        INSERT INTO rc_differences SELECT format(E'%s\n  %s\n  heap: %s\n  mot:  %s', format(command, 'rc_mot'), indexes, heap, ours);
      END IF;
    END LOOP;
    PERFORM mot.check('rc_mot');
    DROP INDEX rc_1, rc_2, rc_3;
    COMMIT;
  END LOOP;
END $$;
CALL rc_run(20, 100);
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
CALL rc_run(20, 100);
SELECT * FROM rc_differences;
SELECT count(*) > 0 AS has_rows FROM rc_mot;
DROP FOREIGN TABLE rc_mot;
DROP TABLE rc_heap, rc_differences;
DROP PROCEDURE rc_run;
DROP FUNCTION rc_columns, rc_row, rc_condition, rc_literal;
