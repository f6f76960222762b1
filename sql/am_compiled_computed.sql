-- Writes of tables with indexes on expressions, and partial ones: compiled where the expressions
-- are plain, and as on heap.
SET mot.compiled_statements = always;
SET jit = off;
CREATE SCHEMA of_heap;
CREATE SCHEMA of_mot;
CREATE FUNCTION forms() RETURNS bigint LANGUAGE sql AS
    $$SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'mot compiled statement'$$;
-- What a statement gives on both kinds of tables, if it is the same.
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    results text[] := '{}';
    schema text;
    result text;
    said text;
BEGIN
    FOREACH schema IN ARRAY ARRAY['of_heap', 'of_mot'] LOOP
        PERFORM set_config('search_path', schema || ', public', true);
        BEGIN
            EXECUTE statement INTO result;
        EXCEPTION WHEN others THEN
            GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
            result := SQLSTATE || ' ' || said;
        END;
        results := results || coalesce(result, 'NULL');
    END LOOP;
    PERFORM set_config('search_path', 'public', true);
    IF results[1] IS DISTINCT FROM results[2] THEN
        RETURN 'heap: ' || results[1] || ', mot: ' || results[2];
    END IF;
    RETURN results[1];
END $$;
DO $$
DECLARE
    method text;
BEGIN
    FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
        PERFORM set_config('search_path', 'of_' || method || ', public', true);
        EXECUTE 'CREATE TABLE person (id int PRIMARY KEY, mail text, age int, gone bool NOT NULL DEFAULT false) USING ' || method;
        CREATE UNIQUE INDEX person_mail ON person (lower(mail));
        CREATE INDEX person_age ON person (age) WHERE NOT gone;
        CREATE UNIQUE INDEX person_ratio ON person ((1000 / age)) WHERE age < 10;
        EXECUTE $f$CREATE FUNCTION put(new_id int, new_mail text, new_age int) RETURNS void LANGUAGE plpgsql AS
            'BEGIN INSERT INTO person VALUES (new_id, new_mail, new_age); END'$f$;
        EXECUTE $f$CREATE FUNCTION put_or_pass(new_id int, new_mail text, new_age int) RETURNS int LANGUAGE plpgsql AS
            'DECLARE made int; BEGIN INSERT INTO person VALUES (new_id, new_mail, new_age) ON CONFLICT (lower(mail)) DO NOTHING RETURNING person.id INTO made; RETURN made; END'$f$;
        EXECUTE $f$CREATE FUNCTION put_or_grow(new_id int, new_mail text, new_age int) RETURNS text LANGUAGE plpgsql AS
            'DECLARE made text; BEGIN INSERT INTO person AS p VALUES (new_id, new_mail, new_age) ON CONFLICT ((1000 / age)) WHERE age < 10
                DO UPDATE SET age = p.age + 1, mail = EXCLUDED.mail RETURNING p::text INTO made; RETURN made; END'$f$;
        EXECUTE $f$CREATE FUNCTION change(of_id int, to_mail text, to_age int) RETURNS int LANGUAGE plpgsql AS
            'DECLARE n int; BEGIN UPDATE person SET mail = to_mail, age = to_age WHERE id = of_id; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END'$f$;
        EXECUTE $f$CREATE FUNCTION leave(low int, high int) RETURNS int LANGUAGE plpgsql AS
            'DECLARE n int; BEGIN UPDATE person SET gone = NOT gone WHERE id BETWEEN low AND high; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END'$f$;
        EXECUTE $f$CREATE FUNCTION older(of_id int) RETURNS int LANGUAGE plpgsql AS
            'DECLARE n int; BEGIN UPDATE person SET age = age + 1 WHERE id = of_id; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END'$f$;
    END LOOP;
END $$;
-- by each index, what it finds
CREATE FUNCTION by_all() RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    RETURN (SELECT count(*) || ' ' || md5(string_agg(p::text, ';' ORDER BY id)) FROM person p WHERE lower(mail) >= '')
        || ' ' || (SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM person WHERE NOT gone AND age >= 0)
        || ' ' || (SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM person WHERE age < 10 AND 1000 / age > 0);
END $$;
-- that they are compiled
SET search_path = of_mot, public;
SELECT forms() \gset
BEGIN;
SELECT put(1, 'a', 11), put_or_pass(1, 'A', 1), put_or_grow(2, 'B', 3), change(1, 'c', 40), leave(1, 1), older(2);
SELECT forms() - :forms >= 5 AS compiled;
ROLLBACK;
RESET search_path;
SELECT same($$SELECT count(put(i, 'Mail' || i, 10 + i % 50)) FROM generate_series(1, 300) i$$);
SELECT same('SELECT by_all()');
-- errors: of a key, of an expression; what comes after is right
SELECT same($$SELECT put(301, 'MAIL7', 20)$$);
SELECT same($$SELECT put(301, 'Zero', 0)$$);
SELECT same($$SELECT put(301, 'Mail301', 5)$$);
SELECT same($$SELECT put(302, 'Mail302', 5)$$);
SELECT same($$SELECT put(302, NULL, NULL)$$);
SELECT same($$SELECT change(302, 'mail301', 50)$$);
SELECT same($$SELECT change(302, 'New', 0)$$);
SELECT same($$SELECT change(302, 'New', 6)$$);
SELECT same($$SELECT change(302, 'New', 5)$$);
SELECT same($$SELECT older(301)$$);
SELECT same('SELECT by_all()');
-- rows in the way, by an expression and by a partial index
SELECT same($$SELECT put_or_pass(400, 'mAIL9', 30)$$);
SELECT same($$SELECT put_or_pass(400, 'Mail400', 30)$$);
SELECT same($$SELECT put_or_grow(401, 'Mail401', 9)$$);
SELECT same($$SELECT put_or_grow(402, 'Mail402', 9)$$);
SELECT same($$SELECT put_or_grow(403, 'Mail403', 9)$$);
SELECT same($$SELECT put_or_grow(404, 'Mail404', 40)$$);
SELECT same($$SELECT put_or_grow(405, 'MAIL404', 8)$$);
SELECT same('SELECT by_all()');
-- many rows into and out of a partial index
SELECT same($$SELECT leave(50, 150)$$);
SELECT same($$SELECT leave(100, 120)$$);
SELECT same('SELECT by_all()');
SELECT same($$SELECT sum(older(i)) FROM generate_series(1, 100) i$$);
SELECT same($$SELECT sum(change(i, upper('mail' || i), NULL)) FROM generate_series(1, 20) i$$);
SELECT same('SELECT by_all()');
SELECT rows FROM mot.check('of_mot.person');
-- an index comes, and goes, between two executions of a form
SET search_path = of_mot, public;
CREATE INDEX person_upper ON person (upper(mail)) WHERE age IS NOT NULL;
SELECT put(500, 'Between', 70), older(500), change(21, 'Changed', 71);
SET enable_seqscan = off;
SELECT id FROM person WHERE upper(mail) = 'BETWEEN' AND age IS NOT NULL;
SELECT id FROM person WHERE upper(mail) = 'CHANGED' AND age IS NOT NULL;
RESET enable_seqscan;
SELECT rows FROM mot.check('person');
DROP INDEX person_upper, person_ratio;
SELECT put(501, 'Zero', 0);
-- a function of a user's in an index: core forms the rows
CREATE FUNCTION twice(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN $1 * 2; END';
CREATE INDEX person_twice ON person (twice(age));
SELECT put(502, 'Twice', 81), change(501, 'Once', 80);
SET enable_seqscan = off;
SELECT id FROM person WHERE twice(age) = 162;
SELECT id FROM person WHERE twice(age) = 160;
RESET enable_seqscan;
SELECT rows FROM mot.check('person');
DROP INDEX person_twice;
-- none is left, and one comes again
DROP INDEX person_mail, person_age;
SELECT put(503, 'ONCE', 82), change(503, 'once', 83);
DELETE FROM person WHERE id = 503;
CREATE UNIQUE INDEX person_mail ON person (lower(mail));
SELECT put(504, 'ONCE', 82);
SELECT put(504, 'Four', 82), change(504, 'Five', 83);
SELECT rows FROM mot.check('person');
-- what is rolled back leaves no key
BEGIN;
SELECT put(505, 'Six', 1);
SAVEPOINT a;
SELECT change(505, 'Seven', 2);
ROLLBACK TO a;
SELECT change(504, 'Seven', 2);
COMMIT;
SELECT id, mail FROM person WHERE lower(mail) IN ('five', 'six', 'seven') ORDER BY id;
SELECT rows FROM mot.check('person');
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA of_heap, of_mot CASCADE;
DROP FUNCTION forms, same, by_all;
