-- What tests call that ask heap tables and memory-optimized ones the same: schemas of both, and of
-- the functions.
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on
\pset fieldsep ' => '
CREATE SCHEMA ordered;
CREATE SCHEMA on_heap;
CREATE SCHEMA on_mot;
SET search_path = ordered;
-- The rows that a statement gives, in its order, how many it has changed, or its error.
CREATE FUNCTION answer(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found record; said text := ''; changed bigint;
BEGIN
  IF statement ~* '^(SELECT|WITH|EXECUTE|FETCH)|RETURNING' THEN
    FOR found IN EXECUTE statement LOOP said := said || ' ' || found::text; END LOOP;
    RETURN trim(said);
  END IF;
  EXECUTE statement;
  GET DIAGNOSTICS changed = ROW_COUNT;
  RETURN changed;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || replace(replace(SQLERRM, 'on_heap.', ''), 'on_mot.', '');
END $$;
-- The answer of heap tables and of memory-optimized ones, or how they differ.
CREATE FUNCTION on_both(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE heap text; mot text; before text := current_setting('search_path');
BEGIN
  PERFORM set_config('search_path', 'on_heap, ordered', false), set_config('default_table_access_method', 'heap', false);
  heap := answer(statement);
  PERFORM set_config('search_path', 'on_mot, ordered', false), set_config('default_table_access_method', 'mot', false);
  mot := answer(statement);
  PERFORM set_config('search_path', before, false), set_config('default_table_access_method', 'heap', false);
  RETURN CASE WHEN heap = mot THEN heap ELSE format('heap: %s, but mot: %s', heap, mot) END;
END $$;
-- Whether the plan on memory-optimized tables has an index scan, and no sort.
CREATE FUNCTION uses_order(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text; sorts boolean := false; scans boolean := false; before text := current_setting('search_path');
BEGIN
  PERFORM set_config('search_path', 'on_mot, ordered', false);
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    sorts := sorts OR line ~ 'Sort'; scans := scans OR line ~ 'Index.*Scan';
  END LOOP;
  PERFORM set_config('search_path', before, false);
  RETURN scans AND NOT sorts;
END $$;
