-- A row that the own command has changed, and that the command then comes to: what a part of
-- WITH, a function or a trigger did to it, and what the statement does with it. As on heap
-- tables:
-- the rows, RETURNING, how many, the error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA oc;
SET search_path = oc;
-- Does something with a row, once in a statement.
CREATE FUNCTION run(command text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('oc.is_done', true) IS DISTINCT FROM 'yes' THEN
    PERFORM set_config('oc.is_done', 'yes', false);
    EXECUTE command;
  END IF;
  RETURN 1;
END $$;
-- Changes nothing itself; with a command to run, runs it.
CREATE FUNCTION trigger_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM run(replace(current_setting('oc.command'), '@', TG_TABLE_NAME)) WHERE current_setting('oc.command', true) <> '';
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE FUNCTION trigger_longer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || ', longer'; RETURN NEW; END $$;
-- A row that goes to another page, behind a lock and an undone change of it, fails an assertion of
-- core's (heap_update): so pages have room for what a transaction does.
CREATE TABLE heap_plain (id int PRIMARY KEY, k int UNIQUE, v text CHECK (v <> 'bad')) WITH (fillfactor = 30);
CREATE TABLE heap_before (id int PRIMARY KEY, k int UNIQUE, v text CHECK (v <> 'bad')) WITH (fillfactor = 30);
CREATE TABLE heap_after (id int PRIMARY KEY, k int UNIQUE, v text CHECK (v <> 'bad')) WITH (fillfactor = 30);
CREATE FOREIGN TABLE mot_plain (id int PRIMARY KEY, k int UNIQUE, v text CHECK (v <> 'bad')) SERVER mot;
CREATE FOREIGN TABLE mot_before (id int PRIMARY KEY, k int UNIQUE, v text CHECK (v <> 'bad')) SERVER mot;
CREATE FOREIGN TABLE mot_after (id int PRIMARY KEY, k int UNIQUE, v text CHECK (v <> 'bad')) SERVER mot;
DO $$
DECLARE kind text;
BEGIN
  FOREACH kind IN ARRAY ARRAY['heap', 'mot'] LOOP
    EXECUTE format('CREATE TRIGGER b BEFORE UPDATE OR DELETE ON %s_before FOR EACH ROW EXECUTE FUNCTION trigger_run()', kind);
    EXECUTE format('CREATE TRIGGER i BEFORE INSERT ON %s_before FOR EACH ROW EXECUTE FUNCTION trigger_longer()', kind);
    EXECUTE format('CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON %s_after FOR EACH ROW EXECUTE FUNCTION trigger_run()', kind);
  END LOOP;
END $$;
-- What is done to a row, and whether a part of WITH can do it.
CREATE TABLE firsts (name text, command text, in_part bool);
INSERT INTO firsts VALUES
  ('insert', 'INSERT INTO @ VALUES (50, 500, repeat(''z'', 100))', true),
  ('insert the key', 'INSERT INTO @ VALUES (4, 40, ''inner'')', true),
  ('upsert', 'INSERT INTO @ VALUES (1, 99, ''x'') ON CONFLICT (id) DO UPDATE SET v = ''inner''', true),
  ('update', 'UPDATE @ SET v = ''inner'' WHERE id = 1', true),
  ('update of a join', 'UPDATE @ t SET v = ''inner'' FROM generate_series(1, 1) g WHERE t.id = g', true),
  ('update twice', 'UPDATE @ SET v = ''inner'' WHERE id = 1; UPDATE @ SET v = ''again'' WHERE id = 1', false),
  ('update of the key', 'UPDATE @ SET id = 100 WHERE id = 1', true),
  ('update of the other key', 'UPDATE @ SET k = 100 WHERE id = 1', true),
  ('key there and back', 'UPDATE @ SET id = 100 WHERE id = 1; UPDATE @ SET id = 1 WHERE id = 100', false),
  ('delete', 'DELETE FROM @ WHERE id = 1', true),
  ('delete of a join', 'DELETE FROM @ t USING generate_series(1, 1) g WHERE t.id = g', true),
  ('update, delete', 'UPDATE @ SET v = ''inner'' WHERE id = 1; DELETE FROM @ WHERE id = 1', false),
  ('delete, insert', 'DELETE FROM @ WHERE id = 1; INSERT INTO @ VALUES (1, 10, ''anew'')', false),
  ('delete of another', 'DELETE FROM @ WHERE id = 2', true),
  ('undone', 'DO $x$ BEGIN UPDATE @ SET v = ''undone'' WHERE id = 1; RAISE ''x''; EXCEPTION WHEN OTHERS THEN NULL; END $x$', false),
  ('lock', 'SELECT id FROM @ WHERE id = 1 FOR UPDATE', true),
  ('weak lock', 'SELECT id FROM @ WHERE id = 1 FOR KEY SHARE', true);
-- What the statement does then. ? is what runs the first; without one it comes behind.
CREATE TABLE seconds (command text);
INSERT INTO seconds VALUES
  ('INSERT INTO @ AS t VALUES (1, 11, ''new'') ON CONFLICT (id) DO UPDATE SET v = ''set '' || ?'),
  ('INSERT INTO @ AS t VALUES (1, 11, ''new'') ON CONFLICT (id) DO UPDATE SET id = t.id + ?, k = excluded.k, v = excluded.v || t.v'),
  ('INSERT INTO @ AS t VALUES (1, 11, ''new'') ON CONFLICT (id) DO UPDATE SET v = repeat(''long '', 8) || excluded.v WHERE ? > 0'),
  ('INSERT INTO @ AS t VALUES (1, 11, ''new'') ON CONFLICT (id) DO UPDATE SET v = ''bad'' WHERE ? > 0'),
  ('INSERT INTO @ AS t VALUES (1, 11, ''new'') ON CONFLICT (id) DO UPDATE SET v = ''never'' WHERE ? < 0'),
  ('INSERT INTO @ AS t VALUES (1, 11, ''new''), (4, 40, ''four'') ON CONFLICT (id) DO UPDATE SET v = excluded.v || ?'),
  ('INSERT INTO @ AS t VALUES (9, 10, ''new'') ON CONFLICT (k) DO UPDATE SET v = excluded.v || t.v WHERE ? > 0'),
  ('INSERT INTO @ AS t SELECT 1, 11, ''new '' || ? ON CONFLICT (id) DO UPDATE SET v = excluded.v'),
  ('INSERT INTO @ AS t SELECT 1, 11, ''new '' || ? ON CONFLICT DO NOTHING'),
  ('INSERT INTO @ AS t SELECT 1, 10, ''new '' || ?'),
  ('INSERT INTO @ AS t SELECT 4, 40, ''new '' || ?'),
  ('UPDATE @ t SET v = v || '' and '' || ? WHERE id = 1'),
  ('UPDATE @ t SET k = k + ? WHERE id = 1'),
  ('UPDATE @ t SET id = id + 20 WHERE id = 1 AND ? > 0'),
  ('UPDATE @ t SET v = ''bad'' WHERE id = 1 AND ? > 0'),
  ('UPDATE @ t SET v = v || ''!'' WHERE ? > 0'),
  ('UPDATE @ t SET v = v || '' and '' || ? FROM (VALUES (1), (1), (2)) d(n) WHERE t.id = d.n'),
  ('UPDATE @ t SET id = id + 20 FROM (VALUES (1), (3)) d(n) WHERE t.id = d.n AND ? > 0'),
  ('DELETE FROM @ t WHERE id = 1 AND ? > 0'),
  ('DELETE FROM @ t WHERE ? > 0'),
  ('DELETE FROM @ t USING (VALUES (1), (1), (2)) d(n) WHERE t.id = d.n AND ? > 0'),
  ('UPDATE @ t SET v = ''outer'' WHERE id = 1'),
  ('DELETE FROM @ t WHERE id = 1'),
  ('INSERT INTO @ AS t VALUES (1, 11, ''new'') ON CONFLICT (id) DO UPDATE SET v = excluded.v'),
  ('SELECT * FROM @ t WHERE id = 1 AND ? > 0 FOR UPDATE'),
  ('SELECT * FROM @ t WHERE id = 1 AND ? > 0 FOR KEY SHARE'),
  ('SELECT * FROM @ t WHERE id = 1 AND ? > 0');
CREATE PROCEDURE refill(tables text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('oc.is_done', 'yes', false);
  EXECUTE format('DELETE FROM %s', tables);
  EXECUTE format('INSERT INTO %s VALUES (1, 10, %L), (2, 20, %L), (3, 30, %L)', tables, 'one', 'two', 'three');
  PERFORM set_config('oc.is_done', '', false);
END $$;
-- What a statement gives, how many rows it counts, and what is there then. A cursor counts
-- nothing, so it is run twice.
CREATE FUNCTION outcome(command text, tables text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE line record; lines text[]; tagged bigint;
BEGIN
  CALL refill(tables);
  BEGIN
    FOR line IN EXECUTE replace(command, '@', tables) LOOP
      lines := lines || line::text;
    END LOOP;
    CALL refill(tables);
    EXECUTE replace(command, '@', tables);
    GET DIAGNOSTICS tagged = ROW_COUNT;
    SELECT array_agg(l ORDER BY l) || (tagged || ' rows') INTO lines FROM unnest(lines) l;
  EXCEPTION WHEN OTHERS THEN
    lines := ARRAY[format('%s: %s', SQLSTATE, replace(SQLERRM, tables, 'it'))];
  END;
  FOR line IN EXECUTE format('SELECT * FROM %s ORDER BY id', tables) LOOP
    lines := lines || line::text;
  END LOOP;
  RETURN lines;
END $$;
-- The first by a part of WITH that is read once, or for each row; by a function; by a trigger.
CREATE VIEW pairs AS
SELECT way, f.name, CASE WHEN way LIKE 'part%' THEN format('WITH part AS (%s%s) ', f.command, CASE WHEN f.command !~ '^SELECT' THEN ' RETURNING id' END) ELSE '' END
  || replace(s.command, '?', CASE way
    WHEN 'part' THEN '(SELECT count(*) FROM part)' WHEN 'part of the row' THEN '(SELECT count(*) FROM part WHERE part.id >= t.id - 200)' WHEN 'function' THEN format('run(%L)', f.command) ELSE '1' END)
  || CASE WHEN s.command !~ '^SELECT' THEN CASE way WHEN 'part' THEN ' RETURNING *, (SELECT count(*) FROM part)' ELSE ' RETURNING *' END ELSE '' END AS command,
  CASE way WHEN 'trigger' THEN f.command ELSE '' END AS by_trigger
FROM firsts f, seconds s, unnest(ARRAY['part', 'part of the row', 'function', 'trigger']) way
WHERE CASE way
  WHEN 'part' THEN f.in_part
  WHEN 'part of the row' THEN f.in_part AND s.command LIKE '%?%' AND s.command !~ '^INSERT.*SELECT'
  WHEN 'function' THEN s.command LIKE '%?%'
  ELSE s.command NOT LIKE '%?%' END;
CREATE TABLE compared (setting text, tables text, way text, first text, state text, is_equal bool, pair text);
-- Each transaction leaves its dead rows to the next one to clear away.
CREATE PROCEDURE compare(setting text, VARIADIC kinds text[]) LANGUAGE plpgsql AS $$
DECLARE pair record; tables text; heap text[]; mot text[];
BEGIN
  PERFORM set_config('mot.compiled_statements', setting, false);
  FOREACH tables IN ARRAY kinds LOOP
    FOR pair IN SELECT * FROM oc.pairs LOOP
      PERFORM set_config('oc.command', pair.by_trigger, false);
      heap := outcome(pair.command, 'heap_' || tables);
      mot := outcome(pair.command, 'mot_' || tables);
      INSERT INTO compared VALUES (setting, tables, pair.way, pair.name, left(heap[1], 5), heap = mot,
        format(E'%s, by a trigger: %s\n%s\n%s', pair.command, pair.by_trigger, heap, mot));
      COMMIT;
    END LOOP;
  END LOOP;
END $$;
SET synchronous_commit = off;
CALL compare('on', 'plain', 'before', 'after');
CALL compare('off', 'plain');
CALL compare('always', 'plain');
RESET mot.compiled_statements;
-- What the heap table came to, and how often the other one to something else.
SELECT setting, tables, way, count(*) pairs, bool_or(state = '27000') "27000", bool_or(state = '21000') "21000", bool_or(state = '23505') "23505", bool_or(state = '23514') "23514",
  bool_or(state = '0 row') "no row", count(*) FILTER (WHERE is_equal IS NOT TRUE) differ
FROM compared GROUP BY setting, tables, way ORDER BY 1, 2, 3;
SELECT DISTINCT ON (first, state) setting, tables, pair FROM compared WHERE is_equal IS NOT TRUE ORDER BY first, state, pair LIMIT 20;
-- What comes out, said aloud.
SELECT set_config('oc.is_done', '', false), set_config('oc.command', '', false);
CALL refill('mot_plain');
WITH part AS (DELETE FROM mot_plain WHERE id = 1 RETURNING id)
INSERT INTO mot_plain VALUES (1, 10, 'second') ON CONFLICT (id) DO UPDATE SET v = 'set ' || (SELECT count(*) FROM part) RETURNING *;
WITH part AS (UPDATE mot_plain SET id = 100 WHERE id = 2 RETURNING id)
INSERT INTO mot_plain VALUES (2, 20, 'second') ON CONFLICT (id) DO UPDATE SET v = 'set ' || (SELECT count(*) FROM part) RETURNING *;
WITH part AS (UPDATE mot_plain SET v = 'inner' WHERE id = 3 RETURNING id)
INSERT INTO mot_plain VALUES (3, 30, 'p'), (9, 90, 'ninth') ON CONFLICT (k) DO UPDATE SET v = 'after ' || mot_plain.v WHERE (SELECT count(*) FROM part) >= 0 RETURNING *;
SELECT * FROM mot_plain ORDER BY id;
WITH wanted AS (SELECT 3 AS id, 'Green' AS v),
upsert AS (
  INSERT INTO mot_plain VALUES (3, 30, 'Blue') ON CONFLICT (id) DO UPDATE SET (id, v) = (SELECT id, v FROM wanted WHERE wanted.id = mot_plain.id) RETURNING id, v)
INSERT INTO mot_plain VALUES (3, 30, 'Red') ON CONFLICT (id) DO UPDATE SET (id, v) = (SELECT id, v FROM upsert WHERE upsert.id = mot_plain.id) RETURNING *;
SELECT * FROM mot_plain ORDER BY id;
INSERT INTO mot_plain VALUES (3, 30, 'x') ON CONFLICT (id) DO UPDATE SET v = 'y' WHERE run('DELETE FROM mot_plain WHERE id = 3') > 0;
DROP SCHEMA oc CASCADE;
