-- Compiled statements on tables of the access method: whatever a trigger of a foreign key, a cursor or a changed definition asks for, heap tables give the same.
SET client_min_messages = warning;
SET mot.compiled_statements = always;
-- Small tables are scanned whole where their sizes are known.
SET enable_seqscan = off;

CREATE FUNCTION changes(steps int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    found record;
    rows int;
BEGIN
    FOR i IN 1..steps LOOP
        BEGIN
            INSERT INTO child VALUES (i, i, 1);
            said := said || ' i';
        EXCEPTION WHEN foreign_key_violation THEN said := said || ' I';
        END;
        UPDATE child SET n = n + 1 WHERE id = i;
        BEGIN
            UPDATE child SET parent = parent + 1 WHERE id = i;
        EXCEPTION WHEN foreign_key_violation THEN said := said || 'V';
        END;
        UPDATE parent SET n = n + 1 WHERE id = i;
        BEGIN
            UPDATE parent SET id = id + 100 WHERE id = i;
            said := said || 'k';
        EXCEPTION WHEN foreign_key_violation THEN said := said || 'K';
        END;
        BEGIN
            UPDATE child SET n = 0 WHERE id = i;
        EXCEPTION WHEN check_violation THEN said := said || 'C';
        END;
        SELECT * INTO found FROM child WHERE id = i FOR UPDATE;
        DELETE FROM parent WHERE id = i - 3;
        GET DIAGNOSTICS rows = ROW_COUNT;
        said := said || rows;
    END LOOP;
    RETURN said;
END $$;

CREATE FUNCTION deferred() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    SET CONSTRAINTS ALL DEFERRED;
    FOR i IN 1..3 LOOP
        INSERT INTO child VALUES (50 + i, 900 + i, 1);
        UPDATE child SET n = 2 WHERE id = 50 + i;
        INSERT INTO parent VALUES (900 + i);
    END LOOP;
    FOR i IN 1..3 LOOP
        UPDATE parent SET id = id + 10 WHERE id = 900 + i;
    END LOOP;
    SET CONSTRAINTS ALL IMMEDIATE;
    RETURN 'no violation';
EXCEPTION WHEN foreign_key_violation THEN
    RETURN sqlerrm;
END $$;

-- The counters of statistics of this transaction.
CREATE FUNCTION counted() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found record;
    told text;
BEGIN
    FOR i IN 1..5 LOOP
        SELECT * INTO found FROM parent WHERE id = 200 + i;
        INSERT INTO parent VALUES (200 + i);
        UPDATE parent SET n = 7 WHERE id = 200 + i;
        DELETE FROM parent WHERE id = 200 + i;
    END LOOP;
    SELECT format('rows %s %s %s, index scans %s', n_tup_ins, n_tup_upd, n_tup_del, idx_scan) INTO told
        FROM pg_stat_xact_user_tables WHERE relid = 'parent'::regclass;
    RETURN told;
END $$;

CREATE FUNCTION current_of() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    rows CURSOR FOR SELECT * FROM parent WHERE id > 0 ORDER BY id;
    found record;
BEGIN
    FOR i IN 1..2 LOOP
        OPEN rows;
        FETCH rows INTO found;
        UPDATE parent SET n = 1000 + i WHERE CURRENT OF rows;
        CLOSE rows;
    END LOOP;
    RETURN (SELECT string_agg(n::text, ',') FROM parent WHERE n > 1000);
END $$;

-- A column whose value in older rows is in the catalog, and one that its rows lack.
CREATE FUNCTION missing() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found record;
    told text := '';
BEGIN
    ALTER TABLE parent ADD COLUMN late int DEFAULT 5, ADD COLUMN later int;
    FOR i IN 1..3 LOOP
        SELECT * INTO found FROM parent WHERE id = 110 AND late = 5;
        told := told || ' ' || found.late || coalesce(found.later, 0);
        UPDATE parent SET n = n + 1 WHERE id = 110 AND late = 5 AND later IS NULL;
    END LOOP;
    UPDATE parent SET later = 9 WHERE id = 110;
    SELECT * INTO found FROM parent WHERE id = 110;
    RETURN told || ' ' || found;
END $$;

CREATE FUNCTION try(method text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SET default_table_access_method = %I', method);
    CREATE TABLE parent (id int PRIMARY KEY, n int NOT NULL DEFAULT 0);
    CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE DEFERRABLE, n int CHECK (n > 0));
    INSERT INTO parent SELECT g FROM generate_series(1, 10) g;
    RETURN NEXT changes(12);
    RETURN NEXT (SELECT string_agg(parent::text, ' ' ORDER BY id) FROM parent);
    RETURN NEXT (SELECT string_agg(child::text, ' ' ORDER BY id) FROM child);
    RETURN NEXT deferred();
    RETURN NEXT counted();
    RETURN NEXT current_of();
    INSERT INTO parent VALUES (110);
    RETURN NEXT missing();
    CREATE INDEX ON child (parent, n);
    RETURN NEXT (SELECT string_agg(id::text, ' ') FROM child WHERE parent = 10 AND n BETWEEN 1 AND 5);
    DROP TABLE child, parent;
    RESET default_table_access_method;
END $$;

-- A table that publishes updates needs a replica identity, at each execution.
CREATE TABLE unnamed (n int) USING mot;
INSERT INTO unnamed VALUES (1);
SET client_min_messages = error;
CREATE PUBLICATION everything FOR ALL TABLES;
SET client_min_messages = warning;
PREPARE change AS UPDATE unnamed SET n = n + 1;
EXECUTE change;
EXECUTE change;
DROP PUBLICATION everything;
EXECUTE change;
EXECUTE change;
SELECT * FROM unnamed;
DROP TABLE unnamed;
CREATE TEMPORARY TABLE told (method text, line int, said text);
INSERT INTO told SELECT 'mot', * FROM ROWS FROM (generate_series(1, 9), try('mot'));
INSERT INTO told SELECT 'heap', * FROM ROWS FROM (generate_series(1, 9), try('heap'));
-- How often core looks at a foreign key is its versions' own.
SELECT line, CASE WHEN line <> 5 THEN said END AS said FROM told WHERE method = 'heap' ORDER BY line;
SELECT m.line, m.said AS mot, h.said AS heap FROM told m JOIN told h USING (line)
    WHERE m.method = 'mot' AND h.method = 'heap' AND m.said IS DISTINCT FROM h.said;
DROP FUNCTION changes, deferred, counted, current_of, missing, try;

-- Arguments of index conditions are computed before a row is looked for.
-- So are those that another condition makes needless.
SET jit = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION computed(method text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE query text; said text; r record;
BEGIN
    EXECUTE format('CREATE TABLE pairs (a int, b int, c int, PRIMARY KEY (a, b)) USING %I', method);
    FOREACH query IN ARRAY ARRAY['SELECT * FROM pairs WHERE a > $1 AND b = 10 / $2', 'SELECT * FROM pairs WHERE a = $1 AND b = 10 / $2',
        'SELECT * FROM pairs WHERE a = $1 AND b = 10 / $2 FOR UPDATE', 'SELECT * FROM pairs WHERE a = ANY (ARRAY[$1]) AND b > 10 / $2',
        'UPDATE pairs SET c = 1 WHERE a = $1 AND b = 10 / $2 RETURNING *', 'DELETE FROM pairs WHERE a >= $1 AND b = 10 / $2 RETURNING *',
        'SELECT * FROM pairs WHERE a = $1 AND b = 10 / $2 LIMIT 0'] LOOP
        said := query || ':';
        EXECUTE 'PREPARE pair (int, int) AS ' || query;
        FOREACH query IN ARRAY ARRAY['1, 0', '1, 0', 'NULL, 0', '1, 5', 'NULL, 5', '7, 0'] LOOP
            BEGIN
                EXECUTE 'EXECUTE pair (' || query || ')' INTO r;
                said := said || ' ok';
            EXCEPTION WHEN division_by_zero THEN said := said || ' 22012';
            END;
        END LOOP;
        DEALLOCATE pair;
        RETURN NEXT said;
    END LOOP;
    DROP TABLE pairs;
END $$;
SELECT * FROM computed('mot');
SELECT * FROM computed('mot') EXCEPT SELECT * FROM computed('heap');
DROP FUNCTION computed;
