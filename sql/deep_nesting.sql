-- Subqueries and views nested as deep as heap tables allow: what walks over them takes no more stack than core.
SET max_stack_depth = '2MB';
CREATE TABLE dn_heap (a int PRIMARY KEY);
CREATE FOREIGN TABLE dn (a int PRIMARY KEY) SERVER mot;
INSERT INTO dn_heap SELECT generate_series(1, 1000);
ANALYZE dn_heap;
INSERT INTO dn SELECT generate_series(1, 1000);
ANALYZE dn;
-- OFFSET keeps each subquery a scan of its own.
CREATE FUNCTION dn_nested(levels int, source text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE nested text := 'SELECT a FROM ' || source;
BEGIN
  FOR level IN 1 .. levels LOOP
    nested := format('SELECT a + 1 AS a FROM (%s OFFSET 0) AS l', nested);
  END LOOP;
  RETURN nested;
END $$;
-- LOCK TABLE.
DO $$ BEGIN
  EXECUTE 'CREATE VIEW dn_heap_view AS ' || dn_nested(1500, 'dn_heap');
  EXECUTE 'CREATE VIEW dn_view AS ' || dn_nested(1500, 'dn');
END $$;
BEGIN;
LOCK TABLE dn_heap_view IN SHARE MODE;
LOCK TABLE dn_view IN SHARE MODE;
SELECT relation::regclass, mode FROM pg_locks WHERE relation IN ('dn'::regclass, 'dn_view'::regclass) AND locktype = 'relation' ORDER BY 1;
ROLLBACK;
-- Views over views.
DO $$ BEGIN
  CREATE VIEW dn_0 AS SELECT a FROM dn;
  FOR level IN 1 .. 300 LOOP
    EXECUTE format('CREATE VIEW dn_%s AS SELECT a FROM dn_%s', level, level - 1);
  END LOOP;
END $$;
BEGIN;
LOCK TABLE dn_300 IN SHARE MODE NOWAIT;
SELECT relation::regclass, mode FROM pg_locks WHERE relation IN ('dn'::regclass, 'dn_150'::regclass) AND locktype = 'relation' ORDER BY 1;
ROLLBACK;
-- Plans: the states of flat ones are kept between two executions, those of deep ones are made anew.
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION dn_result(source text, levels int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result bigint;
BEGIN
  EXECUTE format('PREPARE %s_%s AS %s', source, levels, dn_nested(levels, source));
  FOR turn IN 1 .. 2 LOOP
    EXECUTE format('EXECUTE %s_%s', source, levels) INTO result;
  END LOOP;
  RETURN result;
EXCEPTION WHEN statement_too_complex THEN
  RETURN 'stack depth limit exceeded';
END $$;
SELECT levels, dn_result('dn_heap', levels) = dn_result('dn', levels) AS is_same FROM unnest(ARRAY[10, 90, 110, 1500]) AS levels;
-- EXPLAIN looks for the nodes above a scan: names of a parameter that comes from the outermost join.
CREATE FUNCTION dn_explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line LIKE '%Index Cond%' THEN RETURN NEXT ltrim(line); END IF;
  END LOOP;
END $$;
SELECT dn_explained(format('SELECT * FROM dn_heap AS h CROSS JOIN LATERAL (%s) AS l LIMIT 1', dn_nested(levels, 'dn WHERE dn.a = h.a')))
FROM (VALUES (1), (300)) AS depths (levels);
DEALLOCATE ALL;
RESET plan_cache_mode;
DROP FUNCTION dn_explained(text), dn_result(text, int);
DO $$ BEGIN
  FOR level IN REVERSE 300 .. 0 LOOP
    EXECUTE format('DROP VIEW dn_%s', level);
  END LOOP;
END $$;
DROP VIEW dn_view, dn_heap_view;
DROP FUNCTION dn_nested(int, text);
DROP FOREIGN TABLE dn;
DROP TABLE dn_heap;
