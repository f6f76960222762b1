-- Generated columns of an UPDATE are computed behind BEFORE row triggers, and of no row that those pass over: as on heap tables.
CREATE TABLE gh (id int PRIMARY KEY, b int, g int GENERATED ALWAYS AS (100 / b) STORED, note text, CHECK (g * b <= 100));
CREATE FOREIGN TABLE gm (id int NOT NULL, b int, g int GENERATED ALWAYS AS (100 / b) STORED, note text, CHECK (g * b <= 100)) SERVER mot;
ALTER TABLE gm ADD PRIMARY KEY (id);
CREATE FUNCTION g_mend() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.b < 0 THEN RETURN NULL; END IF;
    IF NEW.b = 0 THEN NEW.b := 1; END IF;
    NEW.note := concat(NEW.note, ' ', NEW.g IS NULL);
    RETURN NEW;
END $$;
CREATE FUNCTION g_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE '% was % is %', TG_NAME, OLD.g, NEW.g;
    RETURN NEW;
END $$;
CREATE FUNCTION pg_temp.both(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE engine text;
BEGIN
    FOREACH engine IN ARRAY ARRAY['gh', 'gm'] LOOP
        BEGIN
            RETURN QUERY EXECUTE format('SELECT %L || '': '' || r::text FROM pg_temp.one(%L) r', engine, replace(command, 'TABLE', engine));
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT engine || ': ' || SQLSTATE || ' ' || SQLERRM;
        END;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.one(command text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE command; END $$;
CREATE TRIGGER mend BEFORE UPDATE ON gh FOR EACH ROW EXECUTE FUNCTION g_mend();
CREATE TRIGGER mend BEFORE UPDATE ON gm FOR EACH ROW EXECUTE FUNCTION g_mend();
CREATE TRIGGER tell AFTER UPDATE OF g ON gh FOR EACH ROW EXECUTE FUNCTION g_tell();
CREATE TRIGGER tell AFTER UPDATE OF g ON gm FOR EACH ROW EXECUTE FUNCTION g_tell();
INSERT INTO gh (id, b) SELECT i, i FROM generate_series(1, 6) i;
INSERT INTO gm (id, b) SELECT i, i FROM generate_series(1, 6) i;
SELECT pg_temp.both('UPDATE TABLE SET b = 0 WHERE id = 1 RETURNING (id, b, g, note)::text');
-- Passed over.
SELECT pg_temp.both('UPDATE TABLE SET b = -b WHERE id < 3 RETURNING (id, b, g, note)::text');
-- Several rows, of which none needs it and one does.
SELECT pg_temp.both('UPDATE TABLE SET b = (id - 4) * 5 WHERE id >= 4 RETURNING (id, b, g, note)::text');
-- Still an error where the trigger leaves it one.
CREATE FUNCTION g_break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.b = 7 THEN NEW.b := 0; END IF; RETURN NEW; END $$;
CREATE TRIGGER z_break BEFORE UPDATE ON gh FOR EACH ROW EXECUTE FUNCTION g_break();
CREATE TRIGGER z_break BEFORE UPDATE ON gm FOR EACH ROW EXECUTE FUNCTION g_break();
SELECT pg_temp.both('UPDATE TABLE SET b = 7 WHERE id = 2 RETURNING (id, b, g, note)::text');
-- A join that gives a row twice: the second time it is one that this command has changed.
SELECT pg_temp.both('UPDATE TABLE t SET b = x.b FROM (VALUES (3, 10), (3, 10), (5, 20)) x (id, b) WHERE t.id = x.id RETURNING (t.id, t.b, t.g, t.note)::text');
-- Prepared, many times.
PREPARE change(int, int) AS UPDATE gm SET b = $2 WHERE id = $1 RETURNING id, b, g;
EXECUTE change(6, 0);
EXECUTE change(6, 50);
EXECUTE change(6, 0);
EXECUTE change(6, -1);
EXECUTE change(6, 25);
EXECUTE change(6, 0);
EXECUTE change(6, 4);
-- ON CONFLICT.
SELECT pg_temp.both('INSERT INTO TABLE (id, b) VALUES (6, 3) ON CONFLICT (id) DO UPDATE SET b = 0 RETURNING (id, b, g, note)::text');
SELECT (SELECT array_agg(x) FROM (SELECT id, b, g FROM gh WHERE id < 6 ORDER BY id) x) IS NOT DISTINCT FROM (SELECT array_agg(x) FROM (SELECT id, b, g FROM gm WHERE id < 6 ORDER BY id) x) AS same;
SELECT rows FROM mot.check('gm');
-- A row that an UPDATE moves from a heap partition, before and behind rows of the memory-optimized one that it changes.
CREATE TABLE gr (k int NOT NULL, b int, g int GENERATED ALWAYS AS (b * 2) STORED, o oid GENERATED ALWAYS AS (tableoid) STORED) PARTITION BY RANGE (k);
CREATE TABLE gr_0 PARTITION OF gr FOR VALUES FROM (-10) TO (0);
CREATE FOREIGN TABLE gr_1 PARTITION OF gr FOR VALUES FROM (0) TO (10) SERVER mot;
CREATE TABLE gr_2 PARTITION OF gr FOR VALUES FROM (10) TO (20);
CREATE FUNCTION g_more() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.b := NEW.b + 1000; RETURN NEW; END $$;
CREATE TRIGGER more BEFORE INSERT OR UPDATE ON gr_1 FOR EACH ROW EXECUTE FUNCTION g_more();
INSERT INTO gr (k, b) VALUES (-1, 3), (1, 1), (2, 2), (11, 5);
UPDATE gr SET k = 2 WHERE k < 12;
SELECT k, b, g, g = b * 2 AS is_right, o = tableoid AS is_here FROM gr ORDER BY b;
INSERT INTO gr (k, b) VALUES (11, 6);
UPDATE gr SET k = 3 WHERE k > 10;
SELECT k, b, g, g = b * 2 AS is_right, o = tableoid AS is_here FROM gr ORDER BY b;
DROP TABLE gr;
DROP FUNCTION g_more;
DROP TABLE gh, gm;
DROP FUNCTION g_mend, g_tell, g_break;
