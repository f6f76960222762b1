-- RETURNING whose sub-select is the first to read a part of WITH that changes rows: it shows
-- the statement's own row, whatever the part does. The same as on heap tables.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA rw;
SET search_path = rw;
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION longer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name := NEW.name || ', longer'; RETURN NEW; END $$;
CREATE TABLE heap_aside (id int PRIMARY KEY, name text, amount int);
CREATE FOREIGN TABLE mot_aside (id int PRIMARY KEY, name text, amount int) SERVER mot;
-- Tables of every kind that UPDATE and DELETE go row by row for: triggers, generated columns,
-- partitions, a view with CHECK OPTION.
CREATE PROCEDURE make(kind text) LANGUAGE plpgsql AS $$
DECLARE prefix text := CASE kind WHEN 'mot' THEN 'FOREIGN' END; server text := CASE kind WHEN 'mot' THEN 'SERVER mot' END;
BEGIN
  EXECUTE format('CREATE %s TABLE %s_plain (id int PRIMARY KEY, name text, amount int) %s', prefix, kind, server);
  EXECUTE format('CREATE %s TABLE %s_after (id int PRIMARY KEY, name text, amount int) %s', prefix, kind, server);
  EXECUTE format('CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON %s_after FOR EACH ROW EXECUTE FUNCTION nothing()', kind);
  EXECUTE format('CREATE %s TABLE %s_before (id int PRIMARY KEY, name text, amount int) %s', prefix, kind, server);
  EXECUTE format('CREATE TRIGGER b BEFORE INSERT OR UPDATE ON %s_before FOR EACH ROW EXECUTE FUNCTION longer()', kind);
  EXECUTE format('CREATE %s TABLE %s_generated (id int PRIMARY KEY, name text, amount int, more text GENERATED ALWAYS AS (name || %L) STORED) %s', prefix, kind, '+', server);
  EXECUTE format('CREATE VIEW %s_view AS SELECT * FROM %1$s_plain WHERE amount < 1000 WITH CHECK OPTION', kind);
  EXECUTE format('CREATE TABLE %s_parted (id int, name text, amount int) PARTITION BY LIST (id)', kind);
  EXECUTE format('CREATE %s TABLE %s_parted1 PARTITION OF %2$s_parted FOR VALUES IN (1, 2) %s', prefix, kind, server);
  EXECUTE format('CREATE %s TABLE %s_parted2 PARTITION OF %2$s_parted DEFAULT %s', prefix, kind, server);
  EXECUTE format('CREATE TABLE %s_parted_before (id int, name text, amount int) PARTITION BY LIST (id)', kind);
  EXECUTE format('CREATE %s TABLE %s_parted_before1 PARTITION OF %2$s_parted_before DEFAULT %s', prefix, kind, server);
  EXECUTE format('CREATE TRIGGER b BEFORE INSERT OR UPDATE ON %s_parted_before FOR EACH ROW EXECUTE FUNCTION longer()', kind);
END $$;
CALL make('heap');
CALL make('mot');
-- What a statement returns, and what is in its table then.
CREATE FUNCTION outcome(kind text, command text, tables text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE line record; lines text[];
BEGIN
  BEGIN
    FOR line IN EXECUTE replace(replace(command, '@', kind || '_' || tables), '&', kind || '_') LOOP
      lines := lines || line::text;
    END LOOP;
  EXCEPTION WHEN OTHERS THEN
    lines := lines || format('%s: %s', SQLSTATE, SQLERRM);
  END;
  SELECT array_agg(l ORDER BY l) INTO lines FROM unnest(lines) l;
  FOR line IN EXECUTE format('SELECT * FROM %s_%s ORDER BY id', kind, tables) LOOP
    lines := lines || line::text;
  END LOOP;
  RETURN lines;
END $$;
CREATE FUNCTION refill(kind text, tables text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('DELETE FROM %s_aside', kind);
  EXECUTE format('DELETE FROM %s_%s', kind, tables);
  EXECUTE format('INSERT INTO %s_%s (id, name, amount) VALUES (1, %L, 10), (2, %L, 20), (3, %L, 30)', kind, tables, 'one', 'two', repeat('three ', 20));
END $$;
CREATE TABLE parts (part text);
INSERT INTO parts VALUES
  ('INSERT INTO &aside SELECT g, repeat(chr(64 + g % 60), 200), g FROM generate_series(1, 60) g RETURNING id'),
  ('INSERT INTO @ SELECT g, repeat(''J'', 200), g FROM generate_series(40, 90) g RETURNING id'),
  ('UPDATE @ SET name = name || '' of the part'' WHERE id = 3 RETURNING id'),
  ('DELETE FROM @ WHERE id = 3 RETURNING id'),
  ('UPDATE @ t SET name = ''part'' FROM generate_series(1, 3) g WHERE t.id = g AND g = 3 RETURNING t.id');
CREATE TABLE statements (statement text);
INSERT INTO statements VALUES
  ('INSERT INTO @ (id, name, amount) SELECT 10 + g, ''g'' || g, g FROM generate_series(1, 3) g'),
  ('UPDATE @ t SET name = ''out'' WHERE id = 1'),
  ('UPDATE @ t SET name = ''out'' FROM (VALUES (1), (2)) d(n) WHERE t.id = d.n'),
  ('DELETE FROM @ t WHERE id = 2'),
  ('DELETE FROM @ t USING (VALUES (1), (2)) d(n) WHERE t.id = d.n'),
  ('INSERT INTO @ (id, name, amount) VALUES (1, ''proposed'', 11) ON CONFLICT (id) DO UPDATE SET name = excluded.name || '' and set''');
CREATE TABLE targets (target text);
INSERT INTO targets VALUES ('(SELECT count(*) FROM part), *, xmin IS NULL'),
  ('name, CASE WHEN EXISTS (SELECT FROM part) THEN name END, (SELECT string_agg(id::text, '' '') FROM part), name, tableoid IS NULL');
CREATE FUNCTION differs(tables text) RETURNS TABLE (pairs bigint, differ bigint, example text) LANGUAGE plpgsql AS $$
DECLARE command text; heap text[]; mot text[];
BEGIN
  pairs := 0; differ := 0;
  FOR command IN
    SELECT format('WITH part AS (%s) %s RETURNING %s', p.part, s.statement, t.target) FROM parts p, statements s, targets t
    WHERE s.statement NOT LIKE '%CONFLICT%' OR tables NOT LIKE 'parted%'
    ORDER BY 1
  LOOP
    PERFORM refill('heap', tables), refill('mot', tables);
    heap := outcome('heap', command, tables);
    mot := outcome('mot', command, tables);
    pairs := pairs + 1;
    IF heap <> mot OR heap IS NULL OR mot IS NULL THEN
      differ := differ + 1;
      example := coalesce(example, format(E'%s\n%s\n%s', command, heap, mot));
    END IF;
  END LOOP;
  RETURN NEXT;
END $$;
\set tables 'unnest(ARRAY[''plain'', ''after'', ''before'', ''generated'', ''view'', ''parted'', ''parted_before''])'
SET mot.compiled_statements = on;
SELECT t, differs.* FROM :tables t, differs(t);
SET mot.compiled_statements = off;
SELECT t, differs.* FROM :tables t, differs(t);
SET mot.compiled_statements = always;
SELECT t, differs.* FROM :tables t, differs(t);
RESET mot.compiled_statements;
-- What comes out. Bytes of another row that look like the header of a long text ended the server.
SELECT refill('mot', 'plain');
WITH part AS (INSERT INTO mot_plain VALUES (50, 'new', 500) RETURNING id)
INSERT INTO mot_plain VALUES (4, 'four', 40) RETURNING *, (SELECT count(*) FROM part);
WITH part AS (INSERT INTO mot_plain SELECT g, repeat('T', 200) FROM generate_series(100, 150) g RETURNING id)
INSERT INTO mot_plain VALUES (5, 'short') RETURNING id, name, (SELECT count(*) FROM part);
SELECT refill('mot', 'after');
WITH part AS (INSERT INTO mot_after VALUES (50, 'new', 500) RETURNING id)
UPDATE mot_after SET name = 'out' WHERE id = 1 RETURNING *, (SELECT count(*) FROM part);
WITH part AS (INSERT INTO mot_after VALUES (51, 'new', 510) RETURNING id)
DELETE FROM mot_after WHERE id = 2 RETURNING *, (SELECT count(*) FROM part);
SELECT refill('mot', 'before');
WITH part AS (INSERT INTO mot_aside SELECT g, repeat('T', 200), g FROM generate_series(100, 150) g RETURNING id)
INSERT INTO mot_before VALUES (1, 'proposed', 0) ON CONFLICT (id) DO UPDATE SET amount = (SELECT count(*) FROM part), name = excluded.name RETURNING *;
DROP SCHEMA rw CASCADE;
