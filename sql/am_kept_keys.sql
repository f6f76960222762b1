-- UPDATE keeps the keys of indexes whose columns it leaves alone, and computes the others: neither
-- an index's expression nor a class's comparison runs for a key that is kept.
\getenv top PG_ABS_SRCDIR
\cd :top
\set helpers 'sql/forms/on_both.sql'
\set started :ECHO
\set ECHO none
\i :helpers
\set ECHO :started
CREATE EXTENSION hstore SCHEMA ordered;
-- a function that fails from now on is not called where its columns stay
CREATE FUNCTION doubled(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN n * 2; END$$;
SELECT on_both($$CREATE TABLE item (id int PRIMARY KEY, n int, note text, big text) WITH (fillfactor = 50)$$);
SELECT on_both($$INSERT INTO item SELECT i, i, 'n' || i, repeat('b', 3000) FROM generate_series(1, 8) i$$);
SELECT on_both($$CREATE INDEX item_doubled ON item (doubled(n))$$);
SELECT on_both($$CREATE INDEX item_some ON item (id) WHERE doubled(n) > 4$$);
CREATE OR REPLACE FUNCTION doubled(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RAISE 'doubled'; END$$;
SELECT on_both($$UPDATE item SET note = 'x' WHERE id < 4$$);
SELECT on_both($$UPDATE item SET note = upper(note), big = big || 'b' WHERE id = 4$$);
SELECT on_both($$UPDATE item SET note = s.n FROM (VALUES (5, 'five')) s (id, n) WHERE s.id = item.id$$);
SELECT on_both($$UPDATE item SET n = n, note = 'same' WHERE id = 6$$);
SELECT on_both($$INSERT INTO item VALUES (6, 6) ON CONFLICT (id) DO UPDATE SET note = 'upserted'$$);
SELECT on_both($$UPDATE item SET n = n + 1 WHERE id = 6$$);
SELECT on_both($$UPDATE item SET n = NULL WHERE id = 6$$);
SELECT on_both($$INSERT INTO item VALUES (9, 9)$$);
CREATE PROCEDURE noted(item_id int) LANGUAGE plpgsql AS $$BEGIN UPDATE item SET note = 'noted' WHERE id = item_id; END$$;
SELECT on_both('CALL noted(7)');
-- and by a trigger, whose row is another one
CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note := NEW.note || '!'; RETURN NEW; END$$;
SELECT on_both($$CREATE TRIGGER touch BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION touched()$$);
SELECT on_both($$UPDATE item SET note = 'touched' WHERE id = 8$$);
CREATE OR REPLACE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.n := 1000; RETURN NEW; END$$;
SELECT on_both($$UPDATE item SET note = 'again' WHERE id = 8$$);
SELECT on_both($$DROP TRIGGER touch ON item$$);
CREATE OR REPLACE FUNCTION doubled(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN n * 2; END$$;
SET enable_seqscan = off;
SELECT on_both($$SELECT id, note FROM item WHERE doubled(n) IN (2, 4, 6, 8, 10, 12, 14, 16) ORDER BY doubled(n)$$);
SELECT on_both($$SELECT id, note FROM item WHERE doubled(n) > 4 ORDER BY id$$);
-- what changes moves in the index, beside what stays
SELECT on_both($$CREATE INDEX item_note ON item (lower(note), doubled(n)) INCLUDE (big)$$);
SELECT on_both($$UPDATE item SET note = 'Moved' WHERE id IN (1, 2)$$);
SELECT on_both($$UPDATE item SET n = -n WHERE id IN (2, 3)$$);
SELECT on_both($$SELECT id FROM item WHERE lower(note) = 'moved' ORDER BY doubled(n)$$);
SELECT on_both($$SELECT id FROM item WHERE doubled(n) < 0 ORDER BY doubled(n)$$);
SELECT on_both($$SELECT id FROM item WHERE doubled(n) > 4 ORDER BY id$$);
SELECT on_both($$UPDATE item SET n = -n WHERE id = 3$$);
SELECT on_both($$SELECT id FROM item WHERE doubled(n) > 4 ORDER BY id$$);
-- a column that older rows lack, and one that is dropped
SELECT on_both($$ALTER TABLE item ADD later int DEFAULT 7, DROP big$$);
SELECT on_both($$CREATE INDEX item_later ON item ((later + n))$$);
SELECT on_both($$UPDATE item SET note = 'l' || id WHERE id <= 3$$);
SELECT on_both($$UPDATE item SET later = 8 WHERE id = 3$$);
SELECT on_both($$SELECT id FROM item WHERE later + n > 0 ORDER BY later + n, id$$);
-- an expression over the whole row
SELECT on_both($$CREATE FUNCTION whole_item(i item) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN length(i.note); END'$$);
SELECT on_both($$CREATE INDEX item_whole ON item (whole_item(item))$$);
SELECT on_both($$UPDATE item SET note = 'a long note' WHERE id = 5$$);
SELECT on_both($$SELECT id, note FROM item WHERE whole_item(item) = 11$$);
-- savepoints, changes of one row in one transaction, own rows
CREATE PROCEDURE several() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO item VALUES (20, 20, 'own', 1);
  UPDATE item SET note = 'own too' WHERE id = 20;
  BEGIN
    UPDATE item SET n = 30, note = 'lost' WHERE id = 20;
    UPDATE item SET note = 'lost, too' WHERE id = 20;
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN
    UPDATE item SET note = 'kept' WHERE id = 20;
  END;
END $$;
SELECT on_both('CALL several()');
SELECT on_both($$SELECT id, note FROM item WHERE doubled(n) IN (40, 60)$$);
SELECT on_both($$SELECT id, note FROM item WHERE lower(note) = 'kept'$$);

-- classes that only functions compare: a comparison that fails from now on is not called either
CREATE TYPE size AS (n int);
CREATE FUNCTION size_cmp(a size, b size) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$BEGIN RETURN sign(a.n - b.n); END$$;
CREATE FUNCTION size_lt(a size, b size) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT a.n < b.n';
CREATE FUNCTION size_eq(a size, b size) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT a.n = b.n';
CREATE OPERATOR <<< (LEFTARG = size, RIGHTARG = size, FUNCTION = size_lt);
CREATE OPERATOR === (LEFTARG = size, RIGHTARG = size, FUNCTION = size_eq);
CREATE OPERATOR CLASS size_ops FOR TYPE size USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, FUNCTION 1 size_cmp(size, size);
SELECT on_both($$CREATE TABLE box (id int PRIMARY KEY, s size, tags hstore, note text) WITH (fillfactor = 50)$$);
SELECT on_both($$CREATE INDEX box_size ON box (s size_ops)$$);
SELECT on_both($$CREATE INDEX box_tags ON box (tags, id)$$);
SELECT on_both($$INSERT INTO box SELECT i, row(i)::size, hstore('k', i::text), 'n' FROM generate_series(1, 6) i$$);
CREATE OR REPLACE FUNCTION size_cmp(a size, b size) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$BEGIN RAISE 'compared'; END$$;
SELECT on_both($$UPDATE box SET note = 'kept' WHERE id < 4$$);
SELECT on_both($$UPDATE box SET s = row(9) WHERE id = 4$$);
CREATE OR REPLACE FUNCTION size_cmp(a size, b size) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$BEGIN RETURN sign(a.n - b.n); END$$;
SELECT on_both($$UPDATE box SET s = row(7 - (s).n), note = 'turned' WHERE id IN (1, 6)$$);
SELECT on_both($$SELECT id, note FROM box WHERE s === row(6)::size$$);
SELECT on_both($$SELECT id, note FROM box WHERE tags = hstore('k', '2')$$);
SELECT on_both($$REINDEX INDEX box_size$$);
SELECT on_both($$UPDATE box SET note = 'behind' WHERE id IN (2, 6)$$);
SELECT on_both($$SELECT id, note FROM box WHERE s === row(1)::size$$);
SELECT rows FROM mot.check('on_mot.item');
SELECT rows FROM mot.check('on_mot.box');
SET client_min_messages = error;
DROP SCHEMA on_heap, on_mot, ordered CASCADE;
