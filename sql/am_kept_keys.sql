-- UPDATE keeps the keys of indexes whose columns it leaves alone, and computes the others: neither
-- an index's expression nor a class's comparison runs for a key that is kept.
\set VERBOSITY default
SET client_min_messages = warning;
CREATE SCHEMA am_kept_keys;
CREATE SCHEMA of_heap;
CREATE SCHEMA of_mot;
CREATE EXTENSION hstore SCHEMA public;
-- Runs a statement in a schema of each access method, and shows what came of it.
CREATE FUNCTION am_kept_keys.outcome(method text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text; state text; message text; rows bigint;
BEGIN
  PERFORM set_config('search_path', 'of_' || method || ', am_kept_keys, public', true);
  PERFORM set_config('default_table_access_method', method, true);
  IF statement ~* '^\s*(select|values|table)\M|\mreturning\M' THEN
    EXECUTE 'WITH t AS (' || statement || ') SELECT coalesce(string_agg(t::text, '' ''), ''nothing'') FROM t' INTO result;
  ELSE
    EXECUTE statement;
    GET DIAGNOSTICS rows = ROW_COUNT;
    result := 'ok ' || rows;
  END IF;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
  RETURN state || ': ' || replace(message, 'of_' || method, 'of');
END $$;
CREATE FUNCTION am_kept_keys.same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE heap text := am_kept_keys.outcome('heap', statement); mot text := am_kept_keys.outcome('mot', statement);
BEGIN
  RETURN CASE WHEN heap = mot THEN heap ELSE E'heap: ' || heap || E'\nMOT:  ' || mot END;
END $$;
SET search_path = am_kept_keys, public;
\t on
\pset format unaligned

-- a function that fails from now on is not called where its columns stay
CREATE FUNCTION doubled(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN n * 2; END$$;
SELECT same($$CREATE TABLE item (id int PRIMARY KEY, n int, note text, big text) WITH (fillfactor = 50)$$);
SELECT same($$INSERT INTO item SELECT i, i, 'n' || i, repeat('b', 3000) FROM generate_series(1, 8) i$$);
SELECT same($$CREATE INDEX item_doubled ON item (doubled(n))$$);
SELECT same($$CREATE INDEX item_some ON item (id) WHERE doubled(n) > 4$$);
CREATE OR REPLACE FUNCTION doubled(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RAISE 'doubled'; END$$;
SELECT same($$UPDATE item SET note = 'x' WHERE id < 4$$);
SELECT same($$UPDATE item SET note = upper(note), big = big || 'b' WHERE id = 4$$);
SELECT same($$UPDATE item SET note = s.n FROM (VALUES (5, 'five')) s (id, n) WHERE s.id = item.id$$);
SELECT same($$UPDATE item SET n = n, note = 'same' WHERE id = 6$$);
SELECT same($$INSERT INTO item VALUES (6, 6) ON CONFLICT (id) DO UPDATE SET note = 'upserted'$$);
SELECT same($$UPDATE item SET n = n + 1 WHERE id = 6$$);
SELECT same($$UPDATE item SET n = NULL WHERE id = 6$$);
SELECT same($$INSERT INTO item VALUES (9, 9)$$);
CREATE PROCEDURE noted(item_id int) LANGUAGE plpgsql AS $$BEGIN UPDATE item SET note = 'noted' WHERE id = item_id; END$$;
SELECT same('CALL noted(7)');
-- and by a trigger, whose row is another one
CREATE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.note := NEW.note || '!'; RETURN NEW; END$$;
SELECT same($$CREATE TRIGGER touch BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION touched()$$);
SELECT same($$UPDATE item SET note = 'touched' WHERE id = 8$$);
CREATE OR REPLACE FUNCTION touched() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.n := 1000; RETURN NEW; END$$;
SELECT same($$UPDATE item SET note = 'again' WHERE id = 8$$);
SELECT same($$DROP TRIGGER touch ON item$$);
CREATE OR REPLACE FUNCTION doubled(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN n * 2; END$$;
SET enable_seqscan = off;
SELECT same($$SELECT id, note FROM item WHERE doubled(n) IN (2, 4, 6, 8, 10, 12, 14, 16) ORDER BY doubled(n)$$);
SELECT same($$SELECT id, note FROM item WHERE doubled(n) > 4 ORDER BY id$$);
-- what changes moves in the index, beside what stays
SELECT same($$CREATE INDEX item_note ON item (lower(note), doubled(n)) INCLUDE (big)$$);
SELECT same($$UPDATE item SET note = 'Moved' WHERE id IN (1, 2)$$);
SELECT same($$UPDATE item SET n = -n WHERE id IN (2, 3)$$);
SELECT same($$SELECT id FROM item WHERE lower(note) = 'moved' ORDER BY doubled(n)$$);
SELECT same($$SELECT id FROM item WHERE doubled(n) < 0 ORDER BY doubled(n)$$);
SELECT same($$SELECT id FROM item WHERE doubled(n) > 4 ORDER BY id$$);
SELECT same($$UPDATE item SET n = -n WHERE id = 3$$);
SELECT same($$SELECT id FROM item WHERE doubled(n) > 4 ORDER BY id$$);
-- a column that older rows lack, and one that is dropped
SELECT same($$ALTER TABLE item ADD later int DEFAULT 7, DROP big$$);
SELECT same($$CREATE INDEX item_later ON item ((later + n))$$);
SELECT same($$UPDATE item SET note = 'l' || id WHERE id <= 3$$);
SELECT same($$UPDATE item SET later = 8 WHERE id = 3$$);
SELECT same($$SELECT id FROM item WHERE later + n > 0 ORDER BY later + n, id$$);
-- an expression over the whole row
SELECT same($$CREATE FUNCTION whole_item(i item) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN length(i.note); END'$$);
SELECT same($$CREATE INDEX item_whole ON item (whole_item(item))$$);
SELECT same($$UPDATE item SET note = 'a long note' WHERE id = 5$$);
SELECT same($$SELECT id, note FROM item WHERE whole_item(item) = 11$$);
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
SELECT same('CALL several()');
SELECT same($$SELECT id, note FROM item WHERE doubled(n) IN (40, 60)$$);
SELECT same($$SELECT id, note FROM item WHERE lower(note) = 'kept'$$);

-- classes that only functions compare: a comparison that fails from now on is not called either
CREATE TYPE size AS (n int);
CREATE FUNCTION size_cmp(a size, b size) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$BEGIN RETURN sign(a.n - b.n); END$$;
CREATE FUNCTION size_lt(a size, b size) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT a.n < b.n';
CREATE FUNCTION size_eq(a size, b size) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT a.n = b.n';
CREATE OPERATOR <<< (LEFTARG = size, RIGHTARG = size, FUNCTION = size_lt);
CREATE OPERATOR === (LEFTARG = size, RIGHTARG = size, FUNCTION = size_eq);
CREATE OPERATOR CLASS size_ops FOR TYPE size USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, FUNCTION 1 size_cmp(size, size);
SELECT same($$CREATE TABLE box (id int PRIMARY KEY, s size, tags hstore, note text) WITH (fillfactor = 50)$$);
SELECT same($$CREATE INDEX box_size ON box (s size_ops)$$);
SELECT same($$CREATE INDEX box_tags ON box (tags, id)$$);
SELECT same($$INSERT INTO box SELECT i, row(i)::size, hstore('k', i::text), 'n' FROM generate_series(1, 6) i$$);
CREATE OR REPLACE FUNCTION size_cmp(a size, b size) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$BEGIN RAISE 'compared'; END$$;
SELECT same($$UPDATE box SET note = 'kept' WHERE id < 4$$);
SELECT same($$UPDATE box SET s = row(9) WHERE id = 4$$);
CREATE OR REPLACE FUNCTION size_cmp(a size, b size) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$BEGIN RETURN sign(a.n - b.n); END$$;
SELECT same($$UPDATE box SET s = row(7 - (s).n), note = 'turned' WHERE id IN (1, 6)$$);
SELECT same($$SELECT id, note FROM box WHERE s === row(6)::size$$);
SELECT same($$SELECT id, note FROM box WHERE tags = hstore('k', '2')$$);
SELECT same($$REINDEX INDEX box_size$$);
SELECT same($$UPDATE box SET note = 'behind' WHERE id IN (2, 6)$$);
SELECT same($$SELECT id, note FROM box WHERE s === row(1)::size$$);
\t off
\pset format aligned
SELECT rows FROM mot.check('of_mot.item');
SELECT rows FROM mot.check('of_mot.box');
SET client_min_messages = error;
DROP SCHEMA am_kept_keys, of_heap, of_mot CASCADE;
DROP EXTENSION hstore;
