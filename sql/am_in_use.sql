-- Tables and indexes that a query of the session uses while a statement would change what they are.
SET client_min_messages = warning;

-- An access method that does not change, in a trigger whose statement goes on.
CREATE TABLE used (id int PRIMARY KEY, n int, note text) USING heap;
INSERT INTO used SELECT g, g, 'row ' || g FROM generate_series(1, 1000) g;
CREATE FUNCTION change_method() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE format('ALTER TABLE used SET ACCESS METHOD %I', TG_ARGV[0]);
    EXCEPTION WHEN object_in_use THEN
        RAISE WARNING '%', sqlerrm;
    END;
    RETURN new;
END $$;
CREATE TRIGGER change_method BEFORE INSERT ON used FOR EACH ROW EXECUTE FUNCTION change_method('mot');
INSERT INTO used VALUES (7, 0, 'duplicate'), (5000, 0, 'new');
INSERT INTO used VALUES (5000, 0, 'new');
SET enable_seqscan = off;
SELECT count(*) FROM used WHERE id IN (7, 5000);
RESET enable_seqscan;
DROP TRIGGER change_method ON used;

-- The same beside a cursor, in both directions.
CREATE FUNCTION beside_cursor(method text) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE
    rows CURSOR FOR SELECT id FROM used WHERE id > 5 ORDER BY id;
    found int;
BEGIN
    OPEN rows;
    FETCH rows INTO found;
    RETURN NEXT found;
    BEGIN
        EXECUTE format('ALTER TABLE used SET ACCESS METHOD %I', method);
    EXCEPTION WHEN object_in_use THEN
        RAISE WARNING '%', sqlerrm;
    END;
    FETCH rows INTO found;
    RETURN NEXT found;
    CLOSE rows;
END $$;
SELECT * FROM beside_cursor('mot');
ALTER TABLE used SET ACCESS METHOD mot;
SELECT * FROM beside_cursor('heap');
SELECT count(*) FROM used WHERE id IN (6, 7, 5000);
ALTER TABLE used SET ACCESS METHOD heap;
SELECT count(*) FROM used WHERE id IN (6, 7, 5000);
DROP TABLE used;

-- A table that the subtransaction made, changed and dropped: its cache entries are gone when the outer one is rolled back.
BEGIN;
SAVEPOINT outer_one;
SAVEPOINT inner_one;
CREATE TABLE passing (id int PRIMARY KEY, note text) USING heap;
CREATE INDEX ON passing (note);
ALTER TABLE passing SET ACCESS METHOD mot;
DROP TABLE passing;
RELEASE inner_one;
CREATE TABLE other (id int PRIMARY KEY) USING mot;
INSERT INTO other VALUES (1);
ROLLBACK TO outer_one;
CREATE TABLE passing (id int PRIMARY KEY, note text) USING mot;
INSERT INTO passing VALUES (1, 'one');
COMMIT;
SELECT * FROM passing;
DROP TABLE passing;

-- A partition that a trigger of INSERT ... ON CONFLICT drops, in a subtransaction.
CREATE TABLE parts (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10) USING mot;
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20) USING mot;
CREATE FUNCTION drop_other() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE 'DROP TABLE parts_2';
    EXCEPTION WHEN object_in_use THEN
        RAISE WARNING '%', sqlerrm;
    END;
    RETURN new;
END $$;
CREATE TRIGGER drop_other BEFORE INSERT ON parts_1 FOR EACH ROW EXECUTE FUNCTION drop_other();
INSERT INTO parts VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = 0;
SELECT * FROM parts;
DROP TABLE parts;

DROP FUNCTION change_method, beside_cursor, drop_other;
