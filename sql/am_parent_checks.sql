-- Checks of new rows' foreign keys look the parent up without a query where that is simple, and
-- leave the rest to core's query: the answers and errors are heap's.
CREATE SCHEMA of_heap;
CREATE SCHEMA of_mot;
-- What a statement gives on both kinds of tables, if it is the same.
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    results text[] := '{}';
    schema text;
    result text;
    said text;
    detail text;
BEGIN
    FOREACH schema IN ARRAY ARRAY['of_heap', 'of_mot'] LOOP
        PERFORM set_config('search_path', schema || ', public', true);
        BEGIN
            EXECUTE statement;
            GET DIAGNOSTICS result = ROW_COUNT;
        EXCEPTION WHEN others THEN
            GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
            result := SQLSTATE || ' ' || said || ' ' || detail;
        END;
        results := results || coalesce(result, 'NULL');
    END LOOP;
    PERFORM set_config('search_path', 'public', true);
    IF results[1] IS DISTINCT FROM results[2] THEN
        RETURN 'heap: ' || results[1] || ', mot: ' || results[2];
    END IF;
    RETURN results[1];
END $$;
-- The tables whose rows core looks for by a query of this session.
CREATE FUNCTION queried() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT DISTINCT substring(ident FROM '"of_mot"."(\w+)"') FROM pg_backend_memory_contexts
    WHERE name = 'CachedPlanSource' AND ident LIKE 'SELECT 1 FROM ONLY "of_mot".%FOR KEY SHARE%' ORDER BY 1 $$;
CREATE DOMAIN small AS int CHECK (value < 1000);
DO $$
DECLARE
    method text;
BEGIN
    FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
        PERFORM set_config('search_path', 'of_' || method || ', public', true);
        PERFORM set_config('default_table_access_method', method, true);
        CREATE TABLE city (id int PRIMARY KEY, name varchar(20) UNIQUE, code char(3) UNIQUE, big int8 UNIQUE, part numeric UNIQUE);
        CREATE TABLE flat (floor int, door text, PRIMARY KEY (door, floor));
        CREATE TABLE person (id int PRIMARY KEY, city int REFERENCES city, name varchar(30) REFERENCES city (name),
            code char(3) REFERENCES city (code), big int2 REFERENCES city (big), small small REFERENCES city (big),
            part int REFERENCES city (part), floor int, door text, boss int REFERENCES person,
            FOREIGN KEY (floor, door) REFERENCES flat (floor, door) MATCH FULL);
        -- only columns of the parent's own types, which need no query
        CREATE TABLE stay (id int PRIMARY KEY, city int REFERENCES city, floor int, door text, since small REFERENCES city (id),
            before int REFERENCES stay, FOREIGN KEY (floor, door) REFERENCES flat (floor, door));
        CREATE FUNCTION put(new_id int, of_city int) RETURNS void LANGUAGE plpgsql AS
            'BEGIN INSERT INTO stay (id, city) VALUES (new_id, of_city); END';
        INSERT INTO city SELECT g, 'c' || g, 'k' || g, g, g FROM generate_series(1, 9) g;
        INSERT INTO flat SELECT g, 'd' || g FROM generate_series(1, 9) g;
    END LOOP;
END $$;
-- without a query: one row and many, compiled and not, with a parent of the same statement
SELECT same('INSERT INTO stay VALUES (1, 1, 1, ''d1'', 1, 1)');
SELECT same('INSERT INTO stay SELECT g, g, g, ''d'' || g, g, 1 FROM generate_series(2, 9) g');
SELECT count(same(format('SELECT put(%s, %s)', 10 + g, g))) FROM generate_series(1, 9) g;
SELECT same('UPDATE stay SET city = city - 1, floor = 1, door = ''d1'' WHERE id IN (3, 4)');
SELECT same('UPDATE stay SET before = id + 1 WHERE id < 9');
SELECT same('INSERT INTO stay VALUES (20, NULL, 2, NULL, NULL, NULL)');
SELECT same('INSERT INTO stay VALUES (30, 1, 1, ''d1'', 1, 31), (31, 1, 1, ''d1'', 1, 30)');
SELECT same('INSERT INTO stay VALUES (1, 2, 2, ''d2'', 2, 2) ON CONFLICT (id) DO UPDATE SET city = EXCLUDED.city');
SELECT queried();
-- what is wrong is core's to say
SELECT same('INSERT INTO stay VALUES (40, 10, 1, ''d1'', 1, 1)');
SELECT same('INSERT INTO stay VALUES (40, 1, 1, ''d2'', 1, 1)');
SELECT same('INSERT INTO stay VALUES (40, 1, 1, ''d1'', 999, 1)');
SELECT same('INSERT INTO stay VALUES (40, 1, 1, ''d1'', 1, 41)');
SELECT same('INSERT INTO stay SELECT 40 + g, g FROM generate_series(5, 15) g');
SELECT same('SELECT put(40, 10)');
SELECT same('UPDATE stay SET city = 77 WHERE id = 2');
SELECT same('UPDATE stay SET floor = 77 WHERE id = 2');
SELECT queried();
-- whole errors, as core raises them
CREATE FUNCTION told(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    one text; two text; three text; context text;
BEGIN
    EXECUTE statement;
    RETURN 'done';
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS one = CONSTRAINT_NAME, two = TABLE_NAME, three = SCHEMA_NAME, context = PG_EXCEPTION_CONTEXT;
    RETURN concat_ws(' | ', SQLSTATE, one, two, three, split_part(context, E'\n', 1));
END $$;
SELECT told('INSERT INTO of_mot.stay (id, city) VALUES (40, 10)');
SELECT told('INSERT INTO of_heap.stay (id, city) VALUES (40, 10)');
SELECT told('UPDATE of_mot.stay SET city = 10 WHERE id = 2');
-- a parent whose row is compared by a function that its owner may not call
CREATE ROLE caller;
GRANT USAGE ON SCHEMA of_heap, of_mot TO caller;
BEGIN;
ALTER TABLE of_heap.flat OWNER TO caller;
ALTER TABLE of_mot.flat OWNER TO caller;
REVOKE EXECUTE ON FUNCTION int4eq(int, int) FROM PUBLIC;
SELECT same('INSERT INTO stay VALUES (40, NULL, 1, ''d1'')');
ROLLBACK;
SELECT same('INSERT INTO stay VALUES (40, NULL, 1, ''d1'')');
DROP OWNED BY caller;
DROP ROLE caller;
-- indexes that do not compare what the constraint does
CREATE TABLE of_mot.pairs (x int NOT NULL, y int NOT NULL) USING mot;
CREATE UNIQUE INDEX ON of_mot.pairs (x, x);
CREATE UNIQUE INDEX ON of_mot.pairs (y, x) WHERE x > 0;
ALTER TABLE of_mot.pairs ADD UNIQUE (x, y);
CREATE TABLE of_mot.of_pairs (a int, b int, FOREIGN KEY (b, a) REFERENCES of_mot.pairs (y, x)) USING mot;
INSERT INTO of_mot.pairs VALUES (1, 2);
INSERT INTO of_mot.of_pairs VALUES (1, 2);
INSERT INTO of_mot.of_pairs VALUES (1, 999);
INSERT INTO of_mot.of_pairs VALUES (2, 1);
-- triggers that others make with core's functions
CREATE VIEW of_mot.seen AS SELECT 1 AS a;
CREATE TRIGGER checked INSTEAD OF INSERT ON of_mot.seen FOR EACH ROW EXECUTE FUNCTION "RI_FKey_check_ins"();
INSERT INTO of_mot.seen VALUES (1);
CREATE TABLE of_heap.seen (a int) USING heap;
CREATE TRIGGER checked BEFORE INSERT ON of_heap.seen FOR EACH ROW EXECUTE FUNCTION "RI_FKey_check_ins"();
INSERT INTO of_heap.seen VALUES (1);
CREATE TRIGGER checked AFTER INSERT ON of_mot.of_pairs FOR EACH ROW EXECUTE FUNCTION "RI_FKey_check_ins"();
INSERT INTO of_mot.of_pairs VALUES (1, 2);
DROP TRIGGER checked ON of_mot.of_pairs;
\c
SET search_path = public;
-- other types than the parent's, MATCH FULL
SELECT same('INSERT INTO person VALUES (1, 1, ''c1'', ''k1'', 1, 1, 1, 1, ''d1'', 1)');
SELECT same('INSERT INTO person VALUES (2, 1, ''c10'', NULL, NULL, NULL, NULL, NULL, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (2, 1, NULL, ''k '', NULL, NULL, NULL, NULL, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (2, 1, NULL, ''k2 '', NULL, NULL, NULL, NULL, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (3, 1, NULL, NULL, 10, NULL, NULL, NULL, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (3, 1, NULL, NULL, 9, 500, NULL, NULL, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (3, 1, NULL, NULL, 9, 5, 12, NULL, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (3, 1, NULL, NULL, 9, 5, 3, 1, NULL, NULL)');
SELECT same('INSERT INTO person VALUES (3, 1, NULL, NULL, 9, 5, 3, 1, ''d2'', NULL)');
SELECT same('INSERT INTO person VALUES (3, 1, NULL, NULL, 9, 5, 3, 1, ''d1'', 1)');
-- a parent that the transaction made, changed or took away
SELECT same($q$WITH made AS (INSERT INTO city VALUES (50) RETURNING id) INSERT INTO stay (id, city) SELECT 50, id FROM made$q$);
SELECT same($q$WITH gone AS (DELETE FROM city WHERE id = 9 AND false) INSERT INTO stay (id, city) VALUES (51, 50)$q$);
SELECT same('DO $d$ BEGIN INSERT INTO city VALUES (60); INSERT INTO stay (id, city) VALUES (60, 60); UPDATE city SET id = 61 WHERE id = 60; END $d$');
SELECT same('DO $d$ BEGIN INSERT INTO city VALUES (60); UPDATE city SET id = 61 WHERE id = 60; INSERT INTO stay (id, city) VALUES (60, 61); INSERT INTO stay (id, city) VALUES (61, 60); END $d$');
SELECT same('DO $d$ BEGIN INSERT INTO city VALUES (60); DELETE FROM city WHERE id = 60; INSERT INTO stay (id, city) VALUES (60, 60); END $d$');
SELECT same('DO $d$ BEGIN INSERT INTO city VALUES (60); UPDATE city SET part = -1 WHERE id = 60; INSERT INTO stay (id, city) VALUES (60, 60); DELETE FROM stay WHERE id = 60; DELETE FROM city WHERE id = 60; END $d$');
-- a savepoint takes the locks along that were taken under it
SELECT same($q$DO $d$ BEGIN
    BEGIN INSERT INTO stay (id, city) VALUES (70, 1); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;
    INSERT INTO stay (id, city) VALUES (70, 1);
    BEGIN INSERT INTO stay (id, city) VALUES (71, 70); EXCEPTION WHEN foreign_key_violation THEN NULL; END;
    INSERT INTO stay (id, city) VALUES (71, 2);
END $d$$q$);
-- a definition that changes between two checks
SELECT same('ALTER TABLE city ADD COLUMN mayor text');
SELECT same('INSERT INTO stay (id, city) VALUES (80, 3)');
SELECT same('REINDEX TABLE city');
SELECT same('INSERT INTO stay (id, city) VALUES (81, 3)');
SELECT same('ALTER TABLE stay ALTER CONSTRAINT stay_city_fkey DEFERRABLE INITIALLY DEFERRED');
SELECT same('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO stay (id, city) VALUES (82, 99); SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT same('DO $d$ BEGIN SET CONSTRAINTS ALL DEFERRED; INSERT INTO stay (id, city) VALUES (82, 99); INSERT INTO city VALUES (99); SET CONSTRAINTS ALL IMMEDIATE; END $d$');
SELECT same('ALTER TABLE stay ALTER CONSTRAINT stay_city_fkey NOT DEFERRABLE');
SELECT same('ALTER TABLE stay ALTER city TYPE int8');
SELECT same('INSERT INTO stay (id, city) VALUES (83, 3)');
SELECT same('INSERT INTO stay (id, city) VALUES (84, 333333333333)');
SELECT same('TRUNCATE city CASCADE');
SELECT same('INSERT INTO stay (id, city) VALUES (84, 3)');
SELECT same('INSERT INTO city SELECT g, ''c'' || g, ''k'' || g, g, g FROM generate_series(1, 9) g');
SELECT same('INSERT INTO stay (id, city) VALUES (84, 3)');
-- the parent's owner has to have the rights
CREATE ROLE parent_owner;
SELECT same('ALTER TABLE city OWNER TO parent_owner');
GRANT USAGE ON SCHEMA of_heap, of_mot TO parent_owner;
SELECT same('INSERT INTO stay (id, city) VALUES (90, 3)');
SELECT same('REVOKE SELECT ON city FROM parent_owner');
SELECT same('INSERT INTO stay (id, city) VALUES (91, 3)');
SELECT same('GRANT SELECT ON city TO parent_owner');
SELECT same('INSERT INTO stay (id, city) VALUES (91, 3)');
SELECT same('REVOKE UPDATE ON city FROM parent_owner');
SELECT same('INSERT INTO stay (id, city) VALUES (92, 3)');
SELECT same('GRANT UPDATE (name) ON city TO parent_owner');
SELECT same('INSERT INTO stay (id, city) VALUES (92, 3)');
SELECT same('GRANT UPDATE ON city TO parent_owner');
REVOKE USAGE ON SCHEMA of_heap, of_mot FROM parent_owner;
SELECT same('INSERT INTO stay (id, city) VALUES (93, 3)');
GRANT USAGE ON SCHEMA of_heap, of_mot TO parent_owner;
SELECT same('INSERT INTO stay (id, city) VALUES (93, 3)');
-- row security does not hide a parent from its child
SELECT same('ALTER TABLE city ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY');
SELECT same('INSERT INTO stay (id, city) VALUES (94, 3)');
-- parent and child of two kinds
DO $$
BEGIN
    CREATE TABLE of_heap.mixed (id int PRIMARY KEY, city int REFERENCES of_mot.city) USING heap;
    CREATE TABLE of_mot.mixed (id int PRIMARY KEY, city int REFERENCES of_heap.city) USING mot;
END $$;
SELECT same('INSERT INTO mixed SELECT g, g FROM generate_series(1, 9) g');
SELECT split_part(same('INSERT INTO mixed VALUES (10, 10)'), ' on table', 1);
-- partitions of a child, and a parent with a child by inheritance, whose rows are no parents
DO $$
DECLARE
    method text;
BEGIN
    FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
        PERFORM set_config('search_path', 'of_' || method || ', public', true);
        PERFORM set_config('default_table_access_method', method, true);
        CREATE TABLE split (id int, city int REFERENCES city) PARTITION BY RANGE (id);
        CREATE TABLE split_1 PARTITION OF split FOR VALUES FROM (0) TO (10);
        CREATE TABLE split_2 PARTITION OF split FOR VALUES FROM (10) TO (20);
        CREATE TABLE village () INHERITS (city);
        INSERT INTO village (id) VALUES (500);
        CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
        INSERT INTO parts VALUES (1);
        CREATE TABLE of_parts (id int REFERENCES parts);
    END LOOP;
END $$;
SELECT same('INSERT INTO split VALUES (1, 1), (11, 1)');
SELECT same('INSERT INTO split VALUES (1, 1), (11, 500)');
SELECT same('INSERT INTO split_2 VALUES (12, 2)');
SELECT same('INSERT INTO split_2 VALUES (12, 22)');
SELECT same('UPDATE split SET id = id + 10, city = 3 WHERE id < 10');
SELECT same('INSERT INTO of_parts VALUES (1)');
SELECT same('INSERT INTO of_parts VALUES (2)');
SELECT count(*) FROM pg_class, mot.check(oid)
    WHERE relnamespace = 'of_mot'::regnamespace AND relkind = 'r';
ALTER TABLE of_heap.city OWNER TO CURRENT_USER;
ALTER TABLE of_mot.city OWNER TO CURRENT_USER;
DROP OWNED BY parent_owner;
DROP ROLE parent_owner;
