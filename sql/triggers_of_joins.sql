-- BEFORE row triggers run once for each row that is changed, however often a join gives it, and the rest is as on heap tables.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA tj;
SET search_path = tj;
CREATE TABLE told (n serial, line text);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO told (line) VALUES (format('%s %s: %s -> %s', TG_WHEN, TG_OP, OLD, CASE TG_OP WHEN 'UPDATE' THEN NEW::text END));
  IF TG_OP = 'DELETE' THEN
    RETURN CASE WHEN OLD.v <> 5 THEN OLD END;
  END IF;
  IF TG_WHEN = 'BEFORE' THEN
    NEW.v := NEW.v + 1;
    RETURN CASE WHEN OLD.v <> 5 THEN NEW END;
  END IF;
  RETURN NULL;
END $$;
CREATE TABLE other (k int, x int);
INSERT INTO other VALUES (1, 10), (1, 20), (1, 30), (2, 40), (2, 40), (5, 50), (5, 60);
CREATE TABLE tj_heap (k int PRIMARY KEY, v int CHECK (v < 1000), g int GENERATED ALWAYS AS (v * 2) STORED);
CREATE FOREIGN TABLE tj_mot (k int PRIMARY KEY, v int CHECK (v < 1000), g int GENERATED ALWAYS AS (v * 2) STORED) SERVER mot;
-- Runs a statement on the heap table and on the memory-optimized one.
CREATE FUNCTION twice(command text) RETURNS TABLE (what text, line text) LANGUAGE plpgsql AS $$
DECLARE kind text; state text; message text; changed bigint;
BEGIN
  FOREACH kind IN ARRAY ARRAY['heap', 'mot'] LOOP
    DELETE FROM told;
    BEGIN
      EXECUTE replace(command, '@', 'tj_' || kind);
      GET DIAGNOSTICS changed = ROW_COUNT;
      state := changed || ' rows';
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
      state := state || ': ' || replace(message, 'tj_' || kind, 'it');
    END;
    RETURN QUERY SELECT kind, state;
    RETURN QUERY SELECT kind, t.line FROM told t ORDER BY t.n;
    RETURN QUERY EXECUTE format('SELECT %L, tj_%s::text FROM tj_%1$s ORDER BY k', kind, kind);
  END LOOP;
END $$;
-- What differs: a line of one that the other has not, or not as often.
CREATE FUNCTION differs(command text) RETURNS TABLE (what text, line text) LANGUAGE sql AS $$
  WITH both_lines AS MATERIALIZED (SELECT t.what, t.line, row_number() OVER (PARTITION BY t.what, t.line) FROM twice(command) t)
  SELECT 'both', a.line FROM both_lines a JOIN both_lines b USING (line, row_number) WHERE a.what = 'heap' AND b.what = 'mot'
  UNION ALL SELECT 'ONLY ' || (array_agg(a.what))[1], a.line FROM both_lines a GROUP BY a.line, a.row_number HAVING count(*) = 1
  ORDER BY 1, 2
$$;
SELECT * FROM differs('INSERT INTO @ SELECT i, i FROM generate_series(1, 6) i');
CREATE TRIGGER before_u BEFORE UPDATE OR DELETE ON tj_heap FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER before_u BEFORE UPDATE OR DELETE ON tj_mot FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER after_u AFTER UPDATE OR DELETE ON tj_heap FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER after_u AFTER UPDATE OR DELETE ON tj_mot FOR EACH ROW EXECUTE FUNCTION tell();
SELECT * FROM differs('UPDATE @ SET v = v + 100 FROM other WHERE @.k = other.k');
SELECT * FROM differs('UPDATE @ SET v = 1000 - @.k FROM other WHERE @.k = other.k AND x = 30');
SELECT * FROM differs('WITH c AS (UPDATE @ SET v = v FROM other WHERE @.k = other.k RETURNING @.*) SELECT count(*) FROM c');
SELECT * FROM differs('UPDATE @ SET g = DEFAULT FROM other WHERE @.k = other.k');
SELECT * FROM differs('DELETE FROM @ USING other WHERE @.k = other.k');
SELECT * FROM differs('DELETE FROM @ USING other WHERE @.k >= 3 AND x > 20');
-- A trigger that changes another row of the statement, or the row itself.
SELECT * FROM differs('INSERT INTO @ SELECT i, i FROM generate_series(11, 14) i');
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('UPDATE %s SET v = v + 7 WHERE k = $1', TG_TABLE_NAME) USING OLD.v % 100;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
DROP TRIGGER before_u ON tj_heap;
DROP TRIGGER before_u ON tj_mot;
CREATE TRIGGER meddle BEFORE UPDATE OR DELETE ON tj_heap FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle();
CREATE TRIGGER meddle BEFORE UPDATE OR DELETE ON tj_mot FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION meddle();
SELECT * FROM differs('UPDATE @ SET v = 15 WHERE k = 11');
SELECT * FROM differs('UPDATE @ SET v = 13 WHERE k = 12');
SELECT * FROM differs('UPDATE @ SET v = 1 WHERE k BETWEEN 12 AND 13');
SELECT * FROM differs('DELETE FROM @ WHERE k = 12');
SELECT * FROM differs('DELETE FROM @ WHERE k IN (12, 13)');
SELECT rows FROM mot.check('tj_mot');
DROP SCHEMA tj CASCADE;
