-- Errors of users' own code come out as they were raised: code, texts, names and context, whichever way they take through a
-- memory-optimized table. Beside each a heap table of the same name in another schema, where the same command says the same.
SET plan_cache_mode = force_generic_plan;
CREATE SCHEMA eu_heap;
CREATE SCHEMA eu_mot;
-- 13 is the value that raises.
CREATE FUNCTION eu_raise(place text, value int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    IF value IS DISTINCT FROM 13 THEN
        RETURN value;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'ZZ001', MESSAGE = 'raised in ' || place, DETAIL = 'the detail', HINT = 'the hint',
        COLUMN = 'a_column', CONSTRAINT = 'a_constraint', DATATYPE = 'a_type', TABLE = 'a_table', SCHEMA = 'a_schema';
END $$;
CREATE FUNCTION eu_stable(place text, value int) RETURNS int STABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN eu_raise(place, value);
END $$;
CREATE FUNCTION eu_fixed(place text, value int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN eu_raise(place, value);
END $$;
CREATE FUNCTION eu_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM eu_raise(TG_WHEN || ' DELETE', OLD.n);
        RETURN OLD;
    END IF;
    PERFORM eu_raise(TG_WHEN || ' ' || TG_OP, NEW.n);
    RETURN NEW;
END $$;
-- Other errors than the last one: caught, raised again, raised while one is handled.
CREATE FUNCTION eu_handling() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    caught int := 0;
BEGIN
    IF NEW.t = 'once more' THEN
        BEGIN
            PERFORM eu_raise('what is raised once more', 13);
        EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
            FOR i IN 1..20 LOOP
                BEGIN
                    PERFORM i / 0;
                EXCEPTION WHEN division_by_zero THEN
                    NULL;
                END;
            END LOOP;
            RAISE;
        END;
    ELSIF NEW.t = 'handler' THEN
        BEGIN
            PERFORM eu_raise('what is handled', 13);
        EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
            RAISE EXCEPTION 'raised in a handler' USING ERRCODE = 'ZZ002', DETAIL = SQLSTATE || ' was handled';
        END;
    ELSIF NEW.t = 'thousand' THEN
        FOR i IN 1..1000 LOOP
            BEGIN
                PERFORM eu_raise('a loop', 13);
            EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
                caught := caught + 1;
            END;
        END LOOP;
        RAISE EXCEPTION 'raised after %', caught USING ERRCODE = 'ZZ003';
    ELSIF NEW.t = 'mended' THEN
        BEGIN
            PERFORM eu_raise('what is mended', 13);
        EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
            NEW.n := 0;
        END;
    ELSIF NEW.t = 'syntax' THEN
        EXECUTE 'SELEC 1';
    ELSIF NEW.t = 'deep' THEN
        PERFORM eu_raise('the depth', NEW.n);
        UPDATE handling SET t = 'deep' WHERE id = NEW.id + 1;
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION eu_tables(schema text, make text, server text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('search_path', schema || ', public', true);
    EXECUTE format('%s plain (id int PRIMARY KEY, n int, t text) %s', make, server);
    EXECUTE format('%s checked (id int PRIMARY KEY, n int CHECK (eu_fixed(''CHECK'', n) > 0)) %s', make, server);
    EXECUTE format('%s generated (id int PRIMARY KEY, n int, g int GENERATED ALWAYS AS (eu_fixed(''a generated column'', n)) STORED) %s',
        make, server);
    EXECUTE format('%s before_row (id int PRIMARY KEY, n int) %s', make, server);
    EXECUTE format('%s after_row (id int PRIMARY KEY, n int) %s', make, server);
    EXECUTE format('%s handling (id int PRIMARY KEY, n int, t text) %s', make, server);
    INSERT INTO plain SELECT i, i, 'row ' || i FROM generate_series(1, 13) i;
    INSERT INTO checked VALUES (1, 1), (2, 2);
    INSERT INTO generated VALUES (1, 1), (2, 2);
    INSERT INTO before_row VALUES (1, 1), (13, 13);
    INSERT INTO after_row VALUES (1, 1), (13, 13);
    INSERT INTO handling VALUES (1, 1), (2, 2), (3, 3), (4, 13);
    CREATE TRIGGER eu BEFORE INSERT OR UPDATE OR DELETE ON before_row FOR EACH ROW EXECUTE FUNCTION eu_trigger();
    CREATE TRIGGER eu AFTER INSERT OR UPDATE OR DELETE ON after_row FOR EACH ROW EXECUTE FUNCTION eu_trigger();
    CREATE TRIGGER eu BEFORE UPDATE ON handling FOR EACH ROW EXECUTE FUNCTION eu_handling();
END $$;
SELECT eu_tables('eu_heap', 'CREATE TABLE', '');
SELECT eu_tables('eu_mot', 'CREATE FOREIGN TABLE', 'SERVER mot');

CREATE TYPE eu_error AS (code text, message text, detail text, hint text, schema text, relation text, attribute text, kind text,
    rule text, context text);
CREATE FUNCTION eu_said(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    e eu_error;
    caught text;
BEGIN
    BEGIN
        EXECUTE command;
        RETURN 'no error';
    EXCEPTION
        WHEN SQLSTATE 'ZZ001' THEN
            GET STACKED DIAGNOSTICS e.code = RETURNED_SQLSTATE, e.message = MESSAGE_TEXT, e.detail = PG_EXCEPTION_DETAIL,
                e.hint = PG_EXCEPTION_HINT, e.schema = SCHEMA_NAME, e.relation = TABLE_NAME, e.attribute = COLUMN_NAME,
                e.kind = PG_DATATYPE_NAME, e.rule = CONSTRAINT_NAME, e.context = PG_EXCEPTION_CONTEXT;
            caught := 'by its code';
        WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS e.code = RETURNED_SQLSTATE, e.message = MESSAGE_TEXT, e.detail = PG_EXCEPTION_DETAIL,
                e.hint = PG_EXCEPTION_HINT, e.schema = SCHEMA_NAME, e.relation = TABLE_NAME, e.attribute = COLUMN_NAME,
                e.kind = PG_DATATYPE_NAME, e.rule = CONSTRAINT_NAME, e.context = PG_EXCEPTION_CONTEXT;
            caught := 'as another';
    END;
    -- The last lines of the context are this function's and its caller's. 18 has another word for an expression of PL/pgSQL's.
    RETURN format(E'%s %s, caught %s\ndetail: %s\nhint: %s\nnames: %s\n%s', e.code, e.message, caught, e.detail, e.hint,
        concat_ws(' ', e.schema, e.relation, e.attribute, e.kind, e.rule),
        regexp_replace(replace(e.context, 'PL/pgSQL expression', 'SQL expression'), E'\n?[^\n]*SQL statement[^\n]*\nPL.pgSQL function eu_said.*$', ''));
END $$;
-- What a command says of the heap tables, and whether it says the same of the others: on the general path, in the compiled form, and then again.
CREATE FUNCTION eu_compare(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    modes text[] := ARRAY['eu_heap off', 'eu_mot off', 'eu_mot always', 'eu_mot always'];
    texts text[] := '{}';
    mode text;
BEGIN
    FOREACH mode IN ARRAY modes[1:1] || modes LOOP
        PERFORM set_config('search_path', split_part(mode, ' ', 1) || ', public', true);
        PERFORM set_config('default_table_access_method', CASE WHEN mode LIKE 'eu_mot%' THEN 'mot' ELSE 'heap' END, true);
        PERFORM set_config('mot.compiled_statements', split_part(mode, ' ', 2), true);
        texts := texts || eu_said(command);
    END LOOP;
    -- PL/pgSQL says more of an expression that has failed before in the transaction: the first time was for that.
    texts := texts[2:];
    IF texts[1] = ALL (texts) THEN
        RETURN texts[1] || E'\n= equal';
    END IF;
    RETURN array_to_string(texts, E'\n--\n') || E'\n= DIFFERENT';
END $$;

\pset format unaligned
\pset tuples_only on
-- Triggers
SELECT eu_compare('INSERT INTO before_row VALUES (5, 13)');
SELECT eu_compare('UPDATE before_row SET n = 13 WHERE id = 1');
SELECT eu_compare('DELETE FROM before_row WHERE id = 13');
SELECT eu_compare('INSERT INTO after_row VALUES (5, 13)');
SELECT eu_compare('UPDATE after_row SET n = 13 WHERE id = 1');
SELECT eu_compare('DELETE FROM after_row WHERE id = 13');
SELECT eu_compare('INSERT INTO before_row VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = 13');
SELECT eu_compare('UPDATE before_row AS b SET n = 13 FROM plain AS p WHERE p.id = b.id AND p.n = 1');
-- Conditions and generated columns
SELECT eu_compare('INSERT INTO checked VALUES (5, 13)');
SELECT eu_compare('UPDATE checked SET n = 13 WHERE id = 1');
SELECT eu_compare('UPDATE checked AS c SET n = 13 FROM plain AS p WHERE p.id = c.id AND p.n = 1');
SELECT eu_compare('INSERT INTO generated VALUES (5, 13)');
SELECT eu_compare('UPDATE generated SET n = 13 WHERE id = 1');
-- Expressions
SELECT eu_compare($$INSERT INTO plain VALUES (20, eu_raise('VALUES', 13))$$);
SELECT eu_compare($$UPDATE plain SET n = eu_raise('SET', n) WHERE id = 13$$);
SELECT eu_compare($$UPDATE plain SET n = eu_raise('SET', n)$$);
SELECT eu_compare($$UPDATE plain SET n = n WHERE id = 13 RETURNING eu_raise('RETURNING', n)$$);
SELECT eu_compare($$UPDATE plain SET n = eu_raise('SET of the general path', p.n) FROM (SELECT 13 AS n) AS p WHERE id = 13$$);
SELECT eu_compare($$SELECT eu_raise('SELECT', n) FROM plain WHERE id = 13$$);
SELECT eu_compare($$SELECT * FROM plain WHERE eu_raise('WHERE', n) > 0$$);
SELECT eu_compare($$SELECT * FROM plain WHERE id > 5 AND eu_raise('WHERE', n) > 0 ORDER BY id$$);
SELECT eu_compare($$UPDATE plain SET n = 1 WHERE eu_raise('WHERE of UPDATE', n) > 0$$);
SELECT eu_compare($$DELETE FROM plain WHERE eu_raise('WHERE of DELETE', n) > 0$$);
SELECT eu_compare($$SELECT * FROM plain WHERE n > 0 AND eu_raise('WHERE', n) > 0 FOR UPDATE$$);
SELECT eu_compare($$INSERT INTO plain VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = eu_raise('ON CONFLICT', 13)$$);
SELECT eu_compare($$INSERT INTO plain VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = 1 WHERE eu_raise('WHERE of ON CONFLICT', 13) > 0$$);
SELECT eu_compare('UPDATE plain SET n = n / 0');
-- Keys
CREATE FUNCTION eu_key(key int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT n FROM plain WHERE id = eu_stable('a key', key));
END $$;
SELECT eu_compare('SELECT eu_key(13)');
SELECT eu_compare($$SELECT n FROM plain WHERE id = (SELECT eu_raise('a subquery', 13))$$);
SELECT eu_compare($$UPDATE plain SET n = 0 WHERE id = (SELECT eu_raise('a subquery of UPDATE', 13))$$);
SELECT eu_compare($$SELECT p.n FROM generate_series(11, 13) AS k, plain AS p WHERE p.id = eu_stable('a key of a join', k)$$);
SELECT eu_compare($$SELECT n FROM plain WHERE id = ANY (ARRAY[1, eu_stable('a list of keys', 13)])$$);
-- While the planner estimates
SELECT eu_compare($$EXPLAIN SELECT n FROM plain WHERE id = eu_stable('the planner', 13)$$);
SELECT eu_compare($$EXPLAIN UPDATE plain SET n = 0 WHERE n < eu_stable('the planner', 13)$$);
-- Functions in functions
CREATE FUNCTION eu_inner(k int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE plain SET n = eu_raise('nested functions', n) WHERE id = k;
END $$;
CREATE FUNCTION eu_outer(k int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM eu_inner(k);
    RETURN k;
END $$;
SELECT eu_compare('SELECT eu_outer(id) FROM plain WHERE id = 13');
SELECT eu_compare('UPDATE plain SET n = eu_outer(13) WHERE id = 1');
-- Handlers
SELECT eu_compare($$UPDATE handling SET t = 'once more' WHERE id = 1$$);
SELECT eu_compare($$UPDATE handling SET t = 'handler' WHERE id = 1$$);
SELECT eu_compare($$UPDATE handling SET t = 'thousand' WHERE id = 1$$);
SELECT eu_compare($$UPDATE handling SET t = 'deep' WHERE id = 1$$);
SELECT eu_compare($$UPDATE handling SET t = 'syntax' WHERE id = 1$$);
SELECT eu_compare($$WITH made AS (UPDATE handling SET t = 'mended' WHERE id = 1 RETURNING n) SELECT eu_raise('what came later', n + 13) FROM made$$);
-- Many rows at once
SELECT eu_compare($$COPY before_row FROM PROGRAM 'echo 6,6; echo 7,13' (FORMAT csv)$$);
SELECT eu_compare($$COPY checked FROM PROGRAM 'echo 6,6; echo 7,13' (FORMAT csv)$$);
SELECT eu_compare($$COPY (SELECT eu_raise('COPY TO', n) FROM plain WHERE id = 13) TO PROGRAM 'cat >/dev/null'$$);
SELECT eu_compare($$INSERT INTO before_row SELECT id + 100, n FROM plain$$);
-- DDL
SELECT eu_compare($$CREATE TABLE made AS SELECT eu_raise('CREATE TABLE AS', 13) AS n$$);
SELECT eu_compare($$ALTER TABLE plain ADD CHECK (eu_fixed('a new CHECK', n) > 0)$$);
SELECT eu_compare($$ALTER TABLE plain ADD COLUMN more int DEFAULT eu_raise('a new column', 13)$$);
-- A cursor
CREATE FUNCTION eu_cursor() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    r record;
    total int := 0;
BEGIN
    FOR r IN SELECT id, n FROM plain WHERE eu_raise('a cursor', n) > 0 ORDER BY id LOOP
        total := total + r.n;
    END LOOP;
    RETURN total;
END $$;
SELECT eu_compare('SELECT eu_cursor()');

-- A loop that catches each, in one execution after the other of the same plan.
SET search_path = eu_mot, public;
DO $$
DECLARE
    caught int := 0;
    others int := 0;
BEGIN
    FOR i IN 1..1000 LOOP
        BEGIN
            IF i % 2 = 0 THEN
                UPDATE plain SET n = eu_raise('a loop', n) WHERE id = 13;
            ELSE
                DELETE FROM before_row WHERE id = 13;
            END IF;
        EXCEPTION
            WHEN SQLSTATE 'ZZ001' THEN caught := caught + 1;
            WHEN OTHERS THEN others := others + 1;
        END;
    END LOOP;
    RAISE NOTICE '% caught by their code, % others', caught, others;
END $$;

-- What a client sees, and what became of the rows.
\pset tuples_only off
SET search_path = eu_heap, public;
DELETE FROM before_row WHERE id = 13;
UPDATE handling SET t = 'syntax' WHERE id = 1;
CREATE TABLE made AS SELECT eu_raise('CREATE TABLE AS', 13) AS n;
SELECT (SELECT sum(n) FROM plain) AS plain, (SELECT count(*) FROM before_row) AS before_row, (SELECT count(t) FROM handling) AS handling;
SET search_path = eu_mot, public;
DELETE FROM before_row WHERE id = 13;
UPDATE handling SET t = 'syntax' WHERE id = 1;
SET default_table_access_method = mot;
CREATE TABLE made AS SELECT eu_raise('CREATE TABLE AS', 13) AS n;
SELECT (SELECT sum(n) FROM plain) AS plain, (SELECT count(*) FROM before_row) AS before_row, (SELECT count(t) FROM handling) AS handling;

-- In a database whose texts are not UTF-8
SELECT current_database() AS home \gset
CREATE DATABASE eu_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0;
\c eu_latin
SET client_min_messages = warning;
CREATE EXTENSION mot;
CREATE FUNCTION latin(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'ZZ001', MESSAGE = 'caf' || chr(233), DETAIL = chr(223), HINT = chr(252), TABLE = chr(228);
END $$;
CREATE FOREIGN TABLE t (id int PRIMARY KEY, n int) SERVER mot;
INSERT INTO t VALUES (1, 1);
CREATE FUNCTION said() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
    relation text;
BEGIN
    UPDATE t SET n = latin(n);
EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, relation = TABLE_NAME;
    RETURN encode(convert_to(concat_ws(' ', message, detail, hint, relation), 'LATIN1'), 'hex');
END $$;
SELECT said();
SET client_encoding = 'UTF8';
UPDATE t SET n = latin(n);
\c :home
DROP DATABASE eu_latin;
SET client_min_messages = warning;
DROP SCHEMA eu_heap, eu_mot CASCADE;
DROP FUNCTION eu_raise, eu_stable, eu_fixed, eu_trigger, eu_handling, eu_tables, eu_said, eu_compare, eu_key, eu_inner, eu_outer, eu_cursor;
DROP TYPE eu_error;
