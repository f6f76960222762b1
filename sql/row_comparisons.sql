-- Comparisons of rows: an index begins where they do, whatever their columns, directions, types and NULLs.
SET jit = off;
SET client_min_messages = warning;
CREATE FOREIGN TABLE ro_pages (day int NOT NULL, id int NOT NULL, title text COLLATE "C", PRIMARY KEY (day, id)) SERVER mot;
INSERT INTO ro_pages SELECT n % 3, n, 'title ' || n % 10 FROM generate_series(1, 3000) n;
CREATE INDEX ro_titles ON ro_pages (title DESC, day DESC, id DESC);
CREATE INDEX ro_mixed ON ro_pages (id, title DESC);
ANALYZE ro_pages;
-- What a query reads and drops again.
CREATE FUNCTION ro_removed(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line LIKE '%Removed%' THEN RETURN NEXT trim(line); END IF;
  END LOOP;
END $$;
-- Pages of a list: nothing is read that is not of the page.
EXPLAIN (COSTS OFF) SELECT day, id FROM ro_pages WHERE (day, id) > (1, 2500) ORDER BY day, id LIMIT 3;
SELECT ro_removed('SELECT day, id FROM ro_pages WHERE (day, id) > (1, 2500) ORDER BY day, id LIMIT 3');
SELECT day, id FROM ro_pages WHERE (day, id) > (1, 2500) ORDER BY day, id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT day, id FROM ro_pages WHERE (1, 2500) >= (day, id) ORDER BY day DESC, id DESC LIMIT 3;
SELECT ro_removed('SELECT day, id FROM ro_pages WHERE (1, 2500) >= (day, id) ORDER BY day DESC, id DESC LIMIT 3');
SELECT day, id FROM ro_pages WHERE (1, 2500) >= (day, id) ORDER BY day DESC, id DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT title, day, id FROM ro_pages WHERE (title, day, id) < ('title 4', 1, 1000) ORDER BY title DESC, day DESC, id DESC LIMIT 3;
SELECT title, day, id FROM ro_pages WHERE (title, day, id) < ('title 4', 1, 1000) ORDER BY title DESC, day DESC, id DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT title, day, id FROM ro_pages WHERE title = 'title 4' AND (day, id) <= (1, 1000) ORDER BY day DESC, id DESC LIMIT 3;
SELECT title, day, id FROM ro_pages WHERE title = 'title 4' AND (day, id) <= (1, 1000) ORDER BY day DESC, id DESC LIMIT 3;
-- Behind a column that is fixed to the value it is compared with: what is left of the comparison. To another value: nothing.
EXPLAIN (COSTS OFF) SELECT day, id FROM ro_pages WHERE day = 1 AND (day, id) > (1, 2500) ORDER BY id LIMIT 3;
SELECT ro_removed('SELECT day, id FROM ro_pages WHERE day = 1 AND (day, id) > (1, 2500) ORDER BY id LIMIT 3');
SELECT day, id FROM ro_pages WHERE day = 1 AND (day, id) > (1, 2500) ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT title, day, id FROM ro_pages WHERE title = 'title 4' AND ('title 4', 1, 1000) > (title, day, id) ORDER BY day DESC, id DESC LIMIT 3;
SELECT title, day, id FROM ro_pages WHERE title = 'title 4' AND ('title 4', 1, 1000) > (title, day, id) ORDER BY day DESC, id DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT title, day, id FROM ro_pages WHERE title = 'title 4' AND day = 1 AND (day, title, id) <= (1, 'title 4', 1000) ORDER BY id DESC LIMIT 3;
SELECT title, day, id FROM ro_pages WHERE title = 'title 4' AND day = 1 AND (day, title, id) <= (1, 'title 4', 1000) ORDER BY id DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT count(*) FROM ro_pages WHERE day = 1 AND (day, id) > (0, 2500);
SELECT count(*) FROM ro_pages WHERE day = 1 AND (day, id) > (0, 2500);
SELECT count(*) FROM ro_pages WHERE day = 1 AND (day, id) < (0, 2500);
SELECT count(*) FROM ro_pages WHERE day = 1 AND (day, id) > (1, NULL);
SELECT count(*) FROM ro_pages WHERE day = 1 AND (day) >= (1) AND (day, day) >= (1, 1);
-- Only a part: a column that the index does not have there, or has in the other direction.
EXPLAIN (COSTS OFF) SELECT day, id FROM ro_pages WHERE (day, id, title) > (2, 2990, 'title 5') ORDER BY day, id LIMIT 3;
SELECT day, id FROM ro_pages WHERE (day, id, title) > (2, 2990, 'title 5') ORDER BY day, id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT id, title FROM ro_pages WHERE (id, title) > (2990, 'title 5') ORDER BY id LIMIT 3;
EXPLAIN (COSTS OFF) SELECT day, title FROM ro_pages WHERE ('title 5', 2, 7::float8) < (title, day, id) ORDER BY title DESC LIMIT 3;
-- Values that are known when it runs.
SET plan_cache_mode = force_generic_plan;
PREPARE ro_page(int, int, int) AS SELECT day, id FROM ro_pages WHERE (day, id) > ($1, $2) ORDER BY day, id LIMIT $3;
EXPLAIN (COSTS OFF) EXECUTE ro_page(1, 2500, 2);
EXECUTE ro_page(1, 2500, 2);
EXECUTE ro_page(2, 2999, 2);
EXECUTE ro_page(0, NULL, 2);
EXECUTE ro_page(NULL, 1, 2);
DEALLOCATE ro_page;
PREPARE ro_page(int, int) AS SELECT day, id FROM ro_pages WHERE day = $1 AND (day, id) > ($1, $2) ORDER BY id LIMIT 2;
EXPLAIN (COSTS OFF) EXECUTE ro_page(1, 2500);
EXECUTE ro_page(1, 2500);
EXECUTE ro_page(NULL, 1);
EXECUTE ro_page(1, NULL);
DEALLOCATE ro_page;
RESET plan_cache_mode;

-- Random ones, beside a heap table with the same rows: nothing is printed but what differs.
SELECT setseed(0.1815);
CREATE TABLE ro_heap (id int, a int, b text COLLATE "C", c int8 NOT NULL, h date, s timestamptz);
CREATE FOREIGN TABLE ro_mot (id int, a int, b text COLLATE "C", c int8 NOT NULL, h date, s timestamptz) SERVER mot;
CREATE FUNCTION ro_literal(col text, is_stored bool) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN random() < 0.1 AND (col <> 'c' OR NOT is_stored) THEN 'NULL' ELSE CASE col
    WHEN 'a' THEN (floor(random() * 4))::text || CASE WHEN is_stored THEN '' ELSE (ARRAY['', '::int8', '::int2', ' + 3000000000', ' - 3000000000'])[1 + floor(random() * 5)::int] END
    WHEN 'b' THEN (ARRAY['''''', '''a''', '''ab''', '''b''', 'repeat(''a'', 2600)'] || CASE WHEN is_stored THEN NULL ELSE 'repeat(''a'', 5000)' END)[1 + floor(random() * (CASE WHEN is_stored THEN 5 ELSE 6 END))::int] || '::text'
    WHEN 'c' THEN (floor(random() * 4))::text || CASE WHEN is_stored THEN '' ELSE (ARRAY['', '::int8', '::int2'])[1 + floor(random() * 3)::int] END
    WHEN 'h' THEN quote_literal((ARRAY['-infinity', '2020-01-01', '2020-01-02', 'infinity'])[1 + floor(random() * 4)::int]) || '::date'
      || CASE WHEN is_stored THEN '' ELSE (ARRAY['', '::timestamp', '::timestamp + ''1 hour''::interval'])[1 + floor(random() * 3)::int] END
    WHEN 's' THEN quote_literal((ARRAY['-infinity', '2020-01-01', '2020-01-01 01:00', 'infinity'])[1 + floor(random() * 4)::int])
      || CASE WHEN is_stored THEN '::timestamptz' ELSE (ARRAY['::timestamptz', '::timestamp', '::date'])[1 + floor(random() * 3)::int] END
  END END $$;
CREATE TABLE ro_differences (difference text);
CREATE PROCEDURE ro_run(sets int, statements int) LANGUAGE plpgsql AS $$
DECLARE cols text[]; used text[]; ways text[]; way text; command text; condition text; rows text; heap text; ours text; kind float8; first int; line text; many int := 0;
  op text; back text;
BEGIN
  FOR i IN 1..sets LOOP
    DELETE FROM ro_heap;
    DELETE FROM ro_mot;
    SELECT array_agg(col ORDER BY random()) INTO cols FROM unnest(ARRAY['a', 'b', 'c', 'h', 's']) col;
    cols := cols[1:2 + floor(random() * 3)::int];
    way := (ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])[1 + floor(random() * 4)::int];
    SELECT array_agg(CASE WHEN random() < 0.85 THEN way ELSE ' DESC' END) INTO ways FROM unnest(cols) col;
    SELECT string_agg(col || w, ', ' ORDER BY m) INTO line FROM unnest(cols, ways) WITH ORDINALITY u (col, w, m);
    EXECUTE format('CREATE INDEX ro_index ON ro_mot (%s)', line);
    FOR n IN 1..80 LOOP
      SELECT string_agg(ro_literal(col, true), ', ' ORDER BY m) INTO rows FROM unnest(ARRAY['a', 'b', 'c', 'h', 's']) WITH ORDINALITY u (col, m);
      EXECUTE format('INSERT INTO ro_heap VALUES (%s, %s)', n, rows);
    END LOOP;
    INSERT INTO ro_mot SELECT * FROM ro_heap;
    FOR n IN 1..statements LOOP
      -- a comparison of columns that are the index's from some column on, perhaps with another behind them
      first := CASE WHEN random() < 0.6 THEN 1 ELSE 2 END;
      used := cols[first:];
      IF cardinality(used) < 2 OR random() < 0.15 THEN
        used := used || (ARRAY['id', 'a', 'b', 'c'])[1 + floor(random() * 4)::int];
      END IF;
      op := (ARRAY['<', '<=', '>', '>='])[1 + floor(random() * 4)::int];
      back := translate(op, '<>', '><');
      SELECT string_agg(CASE WHEN col = 'id' THEN '40' ELSE ro_literal(col, false) END, ', ' ORDER BY m) INTO rows FROM unnest(used) WITH ORDINALITY u (col, m);
      condition := CASE WHEN random() < 0.7 THEN format('(%s) %s (%s)', array_to_string(used, ', '), op, rows)
        ELSE format('(%s) %s (%s)', rows, back, array_to_string(used, ', ')) END;
      IF first = 2 THEN condition := condition || format(' AND %s = %s', cols[1], ro_literal(cols[1], false)); END IF;
      IF random() < 0.3 THEN condition := condition || format(' AND %s %s %s', cols[first], (ARRAY['<', '<=', '>', '>='])[1 + floor(random() * 4)::int], ro_literal(cols[first], false)); END IF;
      IF random() < 0.2 THEN
        condition := condition || format(' AND (%s, %s) %s (%s, %s)', cols[first], cols[first % cardinality(cols) + 1], (ARRAY['<', '<=', '>', '>='])[1 + floor(random() * 4)::int],
          ro_literal(cols[first], false), ro_literal(cols[first % cardinality(cols) + 1], false));
      END IF;
      kind := random();
      command := CASE
        WHEN kind < 0.5 THEN format('SELECT array_agg(id ORDER BY id) FROM %%s WHERE %s', condition)
        WHEN kind < 0.7 THEN format('SELECT array_agg(x) FROM (SELECT concat_ws('','', %s) AS x FROM %%s WHERE %s ORDER BY %s LIMIT 4) s', array_to_string(cols, ', '), condition, line)
        WHEN kind < 0.8 THEN format('SELECT array_agg(x) FROM (SELECT concat_ws('','', %s) AS x FROM %%s WHERE %s ORDER BY %s LIMIT 4) s', array_to_string(cols, ', '), condition,
          (SELECT string_agg(col || CASE w WHEN '' THEN ' DESC' WHEN ' DESC' THEN '' WHEN ' NULLS FIRST' THEN ' DESC NULLS LAST' ELSE ' NULLS FIRST' END, ', ' ORDER BY m)
            FROM unnest(cols, ways) WITH ORDINALITY u (col, w, m)))
        WHEN kind < 0.9 THEN format('SELECT array_agg(t.id || ''/'' || u.id ORDER BY t.id, u.id) FROM %%1$s t JOIN %%1$s u ON (u.%1$s, u.%2$s) %3$s (t.%1$s, t.%2$s) WHERE t.id < 10',
          cols[1], cols[2], op)
        ELSE format('WITH w AS (UPDATE %%s SET c = c + 1 WHERE %s RETURNING id) SELECT array_agg(id ORDER BY id) FROM w', condition)
      END;
      BEGIN EXECUTE format(command, 'ro_heap') INTO heap; EXCEPTION WHEN OTHERS THEN heap := SQLSTATE; END;
      BEGIN EXECUTE format(command, 'ro_mot') INTO ours; EXCEPTION WHEN OTHERS THEN ours := SQLSTATE; END;
      IF heap IS DISTINCT FROM ours THEN
        INSERT INTO ro_differences SELECT format(E'%s\n  %s\n  heap: %s\n  mot:  %s', format(command, 'ro_mot'), line, heap, ours);
      END IF;
      FOR rows IN EXECUTE 'EXPLAIN (COSTS OFF) ' || format(command, 'ro_mot') LOOP
        many := many + (rows LIKE '%Index Cond: %ROW(%')::int;
      END LOOP;
    END LOOP;
    PERFORM mot.check('ro_mot');
    DROP INDEX ro_index;
    COMMIT;
  END LOOP;
  IF many < sets * statements / 3 THEN
    INSERT INTO ro_differences VALUES ('few of the statements were answered by several columns: ' || many);
  END IF;
END $$;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
CALL ro_run(60, 60);
SELECT * FROM ro_differences;
SELECT count(*) FROM ro_mot;
DROP FOREIGN TABLE ro_mot, ro_pages;
DROP TABLE ro_heap, ro_differences;
DROP PROCEDURE ro_run;
DROP FUNCTION ro_literal, ro_removed;
