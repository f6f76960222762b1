-- Plans of several nodes, cursors and ON CONFLICT on tables of the access method: core's states are kept, or a compiled
-- form runs. Heap tables give the same.
SET client_min_messages = warning;
SET mot.compiled_statements = always;
SET check_function_bodies = off;
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_bitmapscan = off;

-- Aggregates, joins, sorts, limits and subqueries, executed again and again.
CREATE FUNCTION reads() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    many bigint;
    total numeric;
    found record;
BEGIN
    FOR i IN 1..4 LOOP
        SELECT count(*), sum(n) INTO many, total FROM line WHERE a = i AND b <= 5;
        said := said || format(' %s/%s', many, total);
        SELECT max(b) INTO many FROM line WHERE a = i;
        said := said || format(' %s', many);
        SELECT b INTO many FROM line WHERE a = i ORDER BY t OFFSET (i + 1) / 2 - 1 LIMIT 1;
        said := said || format(' %s', many);
        SELECT h.name, l.n INTO found FROM head h JOIN line l ON l.a = h.a WHERE h.a = i AND l.b = 3;
        said := said || format(' %s', found);
        SELECT b, n INTO found FROM line WHERE a = i AND b = (SELECT max(b) FROM line WHERE a = i);
        said := said || format(' %s', found);
        SELECT count(*) INTO many FROM (SELECT b FROM line WHERE a = i AND b IN (
            SELECT l.b FROM head h JOIN line l ON l.a = h.a AND l.b < h.a + 2 WHERE h.a = i)) AS low;
        said := said || format(' %s', many);
        UPDATE line SET n = n + 1 WHERE a = i AND b < 4;
        DELETE FROM line WHERE a = i AND b BETWEEN 6 AND 7;
        INSERT INTO line VALUES (i, 6, i, 'six');
    END LOOP;
    RETURN said;
END $$;

-- Whole keys that are looked up anew for each row: absent, NULL, and longer than any key; forward and backward.
CREATE FUNCTION keys() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    found record;
    one SCROLL CURSOR (wanted text) FOR SELECT n, name FROM named WHERE name = wanted;
BEGIN
    FOR i IN 1..3 LOOP
        said := said || (SELECT string_agg(coalesce(n.n, -1)::text, ' ' ORDER BY w.at)
            FROM wanted w LEFT JOIN named n ON n.name = w.name AND n.n >= 0);
        said := said || (SELECT ' ' || count(*) FROM wanted w JOIN named n ON n.name = w.name AND n.name = w.other);
        OPEN one('b');
        FETCH one INTO found;
        said := said || format(' %s', found.n);
        FETCH one INTO found;
        said := said || format(' %s', found.n);
        FETCH PRIOR FROM one INTO found;
        said := said || format(' %s', found.n);
        FETCH PRIOR FROM one INTO found;
        said := said || format(' %s', found.n);
        FETCH LAST FROM one INTO found;
        said := said || format(' %s', found.n);
        FETCH FIRST FROM one INTO found;
        said := said || format(' %s, ', found.n);
        CLOSE one;
    END LOOP;
    RETURN said;
END $$;

CREATE FUNCTION loops() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    found record;
    rows CURSOR (wanted int) FOR SELECT * FROM line WHERE a = wanted ORDER BY b;
    back SCROLL CURSOR FOR SELECT l.b, h.name FROM head h JOIN line l ON l.a = h.a WHERE h.a = 2;
BEGIN
    FOR i IN 1..3 LOOP
        FOR found IN SELECT * FROM line WHERE a = i AND b < 4 ORDER BY a, b LOOP
            said := said || format(' %s', found.b);
            EXIT WHEN found.b = i + 1;
        END LOOP;
        FOR found IN SELECT l.b, h.name FROM head h JOIN line l ON l.a = h.a WHERE h.a = i AND l.b < 3 LOOP
            said := said || format(' %s', found.name);
            -- The loop's own statement, in the midst of it.
            IF i < 3 THEN
                said := said || (SELECT count(*) FROM line WHERE a = i);
            END IF;
        END LOOP;
        OPEN rows(i);
        MOVE RELATIVE 2 FROM rows;
        UPDATE line SET n = 100 * i WHERE CURRENT OF rows;
        FETCH rows INTO found;
        said := said || format(' %s', found);
        -- A cursor that its savepoint takes along.
        BEGIN
            UPDATE line SET n = 0 WHERE CURRENT OF rows;
            RAISE EXCEPTION 'back';
        EXCEPTION WHEN raise_exception THEN
            FETCH rows INTO found;
            said := said || format(' %s', found);
        END;
        CLOSE rows;
        BEGIN
            OPEN rows(i);
            FETCH rows INTO found;
            PERFORM found.b / (found.b - 1);
        EXCEPTION WHEN division_by_zero THEN said := said || ' 22012';
        END;
        OPEN back;
        FETCH LAST FROM back INTO found;
        FETCH PRIOR FROM back INTO found;
        said := said || format(' %s', found);
        FETCH FIRST FROM back INTO found;
        said := said || format(' %s', found);
        CLOSE back;
    END LOOP;
    RETURN said || (SELECT string_agg(line::text, '' ORDER BY a, b) FROM line WHERE n >= 100);
END $$;

-- A loop whose cursor is held over COMMIT.
CREATE PROCEDURE commits(INOUT said text) LANGUAGE plpgsql AS $$
DECLARE
    found record;
BEGIN
    said := '';
    FOR i IN 1..3 LOOP
        FOR found IN SELECT b FROM line WHERE a = i AND b < 4 ORDER BY a, b LOOP
            UPDATE line SET t = 'held' WHERE a = i AND b = found.b;
            COMMIT;
            said := said || found.b;
        END LOOP;
    END LOOP;
END $$;

-- What is changed under plans that a SQL function keeps, and under those of everybody else.
CREATE FUNCTION total(int) RETURNS bigint LANGUAGE sql AS 'SELECT sum(n) + count(*) FROM line WHERE a = $1';
CREATE FUNCTION defined() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
BEGIN
    FOR i IN 1..5 LOOP
        said := said || ' ' || coalesce(total(2), 0) || (SELECT count(*) FROM line l WHERE l.a = 2 AND l.n < 1000);
        said := said || (SELECT l FROM head h JOIN line l ON l.a = h.a WHERE h.a = 2 AND l.b = 1);
        CASE i
            WHEN 1 THEN ALTER TABLE line ADD COLUMN late int DEFAULT 5;
            WHEN 2 THEN REINDEX TABLE line;
            WHEN 3 THEN ALTER TABLE line ALTER n TYPE numeric;
            WHEN 4 THEN TRUNCATE line; INSERT INTO line VALUES (2, 1, 7, 'new');
            ELSE NULL;
        END CASE;
    END LOOP;
    ALTER TABLE line DROP COLUMN late, ALTER n TYPE int;
    RETURN said;
END $$;

-- ON CONFLICT, with foreign keys on both sides, a CHECK and a column that older rows lack.
CREATE FUNCTION upserts() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    found record;
    rows int;
BEGIN
    ALTER TABLE acct ADD COLUMN late int DEFAULT 5;
    FOR i IN 1..6 LOOP
        INSERT INTO acct AS c VALUES (i % 4, 1, i, 'x') ON CONFLICT (id) DO UPDATE
            SET n = c.n + excluded.n, note = excluded.note || c.note || c.late RETURNING c.* INTO found;
        said := said || format(' %s', found);
        INSERT INTO acct VALUES (i % 5, 1, i, 'y') ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS rows = ROW_COUNT;
        said := said || rows;
        INSERT INTO acct VALUES (i % 7, 1, i, 'z') ON CONFLICT ON CONSTRAINT acct_pkey DO NOTHING;
        GET DIAGNOSTICS rows = ROW_COUNT;
        said := said || rows;
        INSERT INTO acct AS c VALUES (2, 1, i) ON CONFLICT (id) DO UPDATE SET n = excluded.n WHERE c.n < 2 * excluded.n;
        GET DIAGNOSTICS rows = ROW_COUNT;
        said := said || rows;
        BEGIN
            INSERT INTO acct AS c VALUES (2, 1, i) ON CONFLICT (id) DO UPDATE SET n = - excluded.n;
        EXCEPTION WHEN check_violation THEN said := said || 'C';
        END;
        BEGIN
            INSERT INTO acct AS c VALUES (2, 1, i) ON CONFLICT (id) DO UPDATE SET head = 77;
        EXCEPTION WHEN foreign_key_violation THEN said := said || 'F';
        END;
        BEGIN
            INSERT INTO acct AS c VALUES (20 + i, 78, i) ON CONFLICT (id) DO UPDATE SET head = 1;
        EXCEPTION WHEN foreign_key_violation THEN said := said || 'P';
        END;
        BEGIN
            INSERT INTO acct AS c VALUES (1, 1, NULL) ON CONFLICT (id) DO UPDATE SET n = 1;
        EXCEPTION WHEN not_null_violation THEN said := said || 'N';
        END;
        -- A key that others refer to is changed, or not.
        BEGIN
            INSERT INTO acct AS c VALUES (3, 1, i) ON CONFLICT (id) DO UPDATE SET id = excluded.id + 30;
            said := said || 'k';
        EXCEPTION WHEN foreign_key_violation OR unique_violation THEN said := said || 'K';
        END;
        INSERT INTO owner VALUES (i, i % 4) ON CONFLICT (id) DO UPDATE SET acct = excluded.acct;
    END LOOP;
    RETURN said;
END $$;

-- A foreign key's column has a cast in SQL of the user's, which runs the statement that asks for it, and fails.
CREATE FUNCTION to_id(given interval) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    depth int := current_setting('mot_test.depth');
BEGIN
    IF depth < 2 THEN
        PERFORM set_config('mot_test.depth', (depth + 1)::text, false);
        PERFORM touch(depth + 2);
        BEGIN
            PERFORM touch(depth + 2) / 0;
        EXCEPTION WHEN division_by_zero THEN
            PERFORM touch(9);
        END;
        PERFORM set_config('mot_test.depth', depth::text, false);
    END IF;
    RETURN extract(day FROM given);
END $$;
CREATE FUNCTION touch(one int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    UPDATE loose SET n = n + 1, head = CASE extract(hour FROM head) WHEN 0 THEN head + interval '1 hour' ELSE head - interval '1 hour' END WHERE id = one;
    RETURN one;
END $$;
CREATE CAST (interval AS int) WITH FUNCTION to_id(interval) AS IMPLICIT;
CREATE FUNCTION casts() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
BEGIN
    SET LOCAL mot_test.depth = 0;
    FOR i IN 1..3 LOOP
        PERFORM touch(1);
        said := said || (SELECT string_agg(loose::text, ' ' ORDER BY id) FROM loose);
    END LOOP;
    RETURN said;
END $$;

CREATE FUNCTION counted() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    told text;
BEGIN
    FOR i IN 1..5 LOOP
        INSERT INTO tally AS c VALUES (i % 2, 1) ON CONFLICT (id) DO UPDATE SET n = c.n + 1;
        INSERT INTO tally VALUES (i % 3, 1) ON CONFLICT DO NOTHING;
        PERFORM sum(n) FROM tally WHERE id BETWEEN 0 AND 3;
        -- What a failed statement has read and changed counts.
        BEGIN
            UPDATE tally SET n = 3 / (id - 1) WHERE id >= 0;
        EXCEPTION WHEN division_by_zero THEN NULL;
        END;
    END LOOP;
    SELECT format('rows %s %s %s, index scans %s, fetched %s', n_tup_ins, n_tup_upd, n_tup_del, idx_scan, idx_tup_fetch) INTO told
        FROM pg_stat_xact_user_tables WHERE relid = 'tally'::regclass;
    RETURN told;
END $$;

CREATE FUNCTION try(method text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SET default_table_access_method = %I', method);
    CREATE TABLE head (a int PRIMARY KEY, name text);
    CREATE TABLE line (a int, b int, n int NOT NULL, t text, PRIMARY KEY (a, b));
    CREATE TABLE acct (id int PRIMARY KEY, head int REFERENCES head, n int NOT NULL CHECK (n > 0), note text);
    CREATE TABLE owner (id int PRIMARY KEY, acct int REFERENCES acct DEFERRABLE INITIALLY IMMEDIATE);
    SET mot_test.depth = 9;
    CREATE TABLE loose (id int PRIMARY KEY, head interval REFERENCES head, n int);
    CREATE TABLE named (name text PRIMARY KEY, n int);
    CREATE TABLE wanted (at int PRIMARY KEY, name text, other text);
    INSERT INTO named VALUES ('a', 1), ('b', 2), ('c', 3), (repeat('x', 800), 4);
    INSERT INTO wanted VALUES (1, 'b', 'b'), (2, NULL, 'a'), (3, 'zz', 'zz'), (4, repeat('y', 5000), 'a'), (5, repeat('x', 800), 'b'),
        (6, 'a', NULL), (7, 'b', 'c'), (8, 'c', 'c');
    CREATE TABLE tally (id int PRIMARY KEY, n int);
    INSERT INTO head SELECT g, 'head ' || g FROM generate_series(1, 5) g;
    INSERT INTO line SELECT g, i, 10 * g + i, 't' || 9 - i FROM generate_series(1, 5) g, generate_series(1, 8) i;
    INSERT INTO acct VALUES (0, 1, 1, 'old');
    INSERT INTO loose SELECT g, make_interval(days => g), 0 FROM generate_series(1, 4) g;
    RETURN NEXT reads();
    RETURN NEXT loops();
    RETURN NEXT defined();
    RETURN NEXT upserts();
    RETURN NEXT (SELECT string_agg(acct::text, ' ' ORDER BY id) FROM acct);
    RETURN NEXT (SELECT string_agg(owner::text, ' ' ORDER BY id) FROM owner);
    RETURN NEXT casts();
    RETURN NEXT keys();
    RETURN NEXT counted();
    DROP TABLE named, wanted, loose, owner, acct, line, head, tally;
    RESET default_table_access_method;
END $$;

CREATE TEMPORARY TABLE told (method text, line int, said text);
INSERT INTO told SELECT 'mot', * FROM ROWS FROM (generate_series(1, 9), try('mot'));
INSERT INTO told SELECT 'heap', * FROM ROWS FROM (generate_series(1, 9), try('heap'));
SELECT line, said FROM told WHERE method = 'heap' ORDER BY line;
SELECT m.line, m.said AS mot, h.said AS heap FROM told m JOIN told h USING (line)
    WHERE m.method = 'mot' AND h.method = 'heap' AND m.said IS DISTINCT FROM h.said;

-- A cursor over COMMIT.
CREATE TABLE line (a int, b int, n int NOT NULL, t text, PRIMARY KEY (a, b)) USING mot;
INSERT INTO line SELECT g, i, 10 * g + i, 't' || 9 - i FROM generate_series(1, 5) g, generate_series(1, 8) i;
CALL commits(NULL);
SELECT count(*) FROM line WHERE t = 'held';
-- A cursor's row by name, and the rows before it.
PREPARE ten(int) AS SELECT a, b FROM line WHERE a = $1 ORDER BY a, b;
EXECUTE ten(1);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a, b, t FROM line WHERE a = 3 AND b < 4;
FETCH 2 FROM c;
UPDATE line SET t = 'current' WHERE CURRENT OF c RETURNING b;
FETCH BACKWARD 1 FROM c;
MOVE LAST FROM c;
FETCH PRIOR FROM c;
ROLLBACK;
-- An index is locked as its table is.
PREPARE change AS UPDATE line SET n = n + 1 WHERE a = 1 AND b = 1;
PREPARE lock AS SELECT n FROM line WHERE a = 1 AND b = 1 FOR UPDATE;
PREPARE upsert AS INSERT INTO line VALUES (1, 1, 1) ON CONFLICT (a, b) DO UPDATE SET n = 1;
PREPARE locks AS SELECT mode FROM pg_locks WHERE relation = 'line_pkey'::regclass AND pid = pg_backend_pid();
EXECUTE change;
EXECUTE lock;
EXECUTE upsert;
EXECUTE locks;
BEGIN;
EXECUTE change;
EXECUTE locks;
ROLLBACK;
BEGIN;
EXECUTE lock;
EXECUTE locks;
ROLLBACK;
BEGIN;
EXECUTE upsert;
EXECUTE locks;
ROLLBACK;
-- A lock that went with a savepoint, or with a cursor that failed, is taken again.
BEGIN;
SAVEPOINT s;
EXECUTE change;
EXECUTE locks;
ROLLBACK TO s;
EXECUTE locks;
EXECUTE change;
EXECUTE locks;
ROLLBACK;
CREATE FUNCTION changes(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    UPDATE line SET n = n + 1 WHERE a = 1 AND b = 1;
    RETURN 1 / i;
END $$;
SELECT changes(i) FROM generate_series(1, 2) i;
BEGIN;
DECLARE c CURSOR FOR SELECT changes(i) FROM unnest(ARRAY[1, 0]) i;
FETCH c;
EXECUTE locks;
SAVEPOINT s;
FETCH c;
ROLLBACK TO s;
CLOSE c;
EXECUTE locks;
SELECT changes(1);
EXECUTE locks;
ROLLBACK;
-- What core counts, over savepoints and after the relations were invalidated.
CREATE FUNCTION counts() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    was pg_stat_xact_user_tables;
    counted text;
BEGIN
    SELECT * INTO was FROM pg_stat_xact_user_tables WHERE relid = 'line'::regclass;
    FOR i IN 1..3 LOOP
        INSERT INTO line VALUES (90, i, i);
        FOR j IN 1..2 LOOP
            UPDATE line SET n = n + 1 WHERE a = 90 AND b = i;
        END LOOP;
        BEGIN
            UPDATE line SET n = n + 1 WHERE a = 90 AND b = i;
            DELETE FROM line WHERE a = 90 AND b = i;
            IF i = 2 THEN
                RAISE division_by_zero;
            END IF;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
        EXECUTE format('ALTER TABLE line ALTER t SET STATISTICS %s', 10 * i);
    END LOOP;
    SELECT format('inserted %s, updated %s, deleted %s, index scans %s', n_tup_ins - was.n_tup_ins, n_tup_upd - was.n_tup_upd,
        n_tup_del - was.n_tup_del, idx_scan - was.idx_scan)
        INTO counted FROM pg_stat_xact_user_tables WHERE relid = 'line'::regclass;
    RETURN counted;
END $$;
BEGIN;
SELECT counts();
ROLLBACK;
SET track_counts = off;
BEGIN;
SELECT counts();
ROLLBACK;
RESET track_counts;
BEGIN;
SELECT counts();
ROLLBACK;
-- What is kept, and what is compiled.
SELECT name, count(*) > 3 AS several FROM pg_backend_memory_contexts
    WHERE name IN ('mot kept plan', 'mot compiled statement') GROUP BY 1 ORDER BY 1;
DROP TABLE line;
DROP CAST (interval AS int);
DROP FUNCTION reads, keys, loops, total, defined, upserts, to_id, touch, casts, counted, try, changes, counts;
DROP PROCEDURE commits;
