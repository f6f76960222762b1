-- A row that the statement changed, that something below the statement changed again, and that a join gives once more; the command of COPY's rows. The same of
-- a heap table first.
CREATE TABLE again_heap (id int PRIMARY KEY, v int, w int);
CREATE FOREIGN TABLE again_mot (id int PRIMARY KEY, v int, w int) SERVER mot;
CREATE FUNCTION bump_heap(x int) RETURNS bool LANGUAGE plpgsql VOLATILE AS
$$ BEGIN IF x = 2 THEN UPDATE again_heap SET w = w + 1 WHERE id = 1; END IF; RETURN true; END $$;
CREATE FUNCTION bump_mot(x int) RETURNS bool LANGUAGE plpgsql VOLATILE AS
$$ BEGIN IF x = 2 THEN UPDATE again_mot SET w = w + 1 WHERE id = 1; END IF; RETURN true; END $$;
-- Twice, and back to the first state in between.
CREATE FUNCTION bump_back_heap(x int) RETURNS bool LANGUAGE plpgsql VOLATILE AS
$$ BEGIN
  BEGIN
    IF x = 2 THEN UPDATE again_heap SET w = w + 1 WHERE id = 1; RAISE 'undo'; END IF;
  EXCEPTION WHEN raise_exception THEN NULL; END;
  RETURN bump_heap(x);
END $$;
CREATE FUNCTION bump_back_mot(x int) RETURNS bool LANGUAGE plpgsql VOLATILE AS
$$ BEGIN
  BEGIN
    IF x = 2 THEN UPDATE again_mot SET w = w + 1 WHERE id = 1; RAISE 'undo'; END IF;
  EXCEPTION WHEN raise_exception THEN NULL; END;
  RETURN bump_mot(x);
END $$;
INSERT INTO again_heap VALUES (1, 0, 0);
INSERT INTO again_mot VALUES (1, 0, 0);
SET enable_hashjoin = off;
SET enable_mergejoin = off;
UPDATE again_heap t SET v = v + 10 FROM (VALUES (1), (2)) d(x) WHERE t.id = 1 AND bump_heap(d.x) RETURNING *;
UPDATE again_mot t SET v = v + 10 FROM (VALUES (1), (2)) d(x) WHERE t.id = 1 AND bump_mot(d.x) RETURNING *;
TABLE again_heap;
TABLE again_mot;
UPDATE again_heap t SET v = v + 10 FROM (VALUES (1), (2)) d(x) WHERE t.id = 1 AND bump_back_heap(d.x) RETURNING *;
UPDATE again_mot t SET v = v + 10 FROM (VALUES (1), (2)) d(x) WHERE t.id = 1 AND bump_back_mot(d.x) RETURNING *;
TABLE again_heap;
TABLE again_mot;
-- Changed below the statement first: an error.
UPDATE again_heap t SET v = v + 10 FROM (VALUES (2)) d(x) WHERE t.id = 1 AND bump_heap(d.x);
UPDATE again_mot t SET v = v + 10 FROM (VALUES (2)) d(x) WHERE t.id = 1 AND bump_mot(d.x);
-- Deleted, and met again.
DELETE FROM again_heap t USING (VALUES (1), (3)) d(x) WHERE t.id = 1 AND bump_heap(d.x) RETURNING *;
DELETE FROM again_mot t USING (VALUES (1), (3)) d(x) WHERE t.id = 1 AND bump_mot(d.x) RETURNING *;
RESET enable_hashjoin;
RESET enable_mergejoin;
-- Each row is of the command that COPY is: a cursor of a trigger's, which is a later command, sees all of them when it is read.
CREATE TABLE seen (of text, id int, rows int);
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS
$$ DECLARE n int; c refcursor;
BEGIN
  -- Each INSERT is a command.
  INSERT INTO seen VALUES (TG_RELID::regclass::text, NEW.id, 0);
  IF NEW.id = 2 THEN
    c := 'kept_' || TG_RELID::regclass;
    OPEN c FOR EXECUTE 'SELECT count(*) FROM ' || TG_RELID::regclass;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER look BEFORE INSERT ON again_heap FOR EACH ROW EXECUTE FUNCTION look();
CREATE TRIGGER look BEFORE INSERT ON again_mot FOR EACH ROW EXECUTE FUNCTION look();
BEGIN;
COPY again_heap FROM stdin;
1	1	1
2	2	2
3	3	3
\.
FETCH ALL FROM kept_again_heap;
COPY again_mot FROM stdin;
1	1	1
2	2	2
3	3	3
\.
FETCH ALL FROM kept_again_mot;
SELECT count(DISTINCT cmin::text) FROM again_heap;
SELECT count(DISTINCT cmin::text) FROM again_mot;
COMMIT;
SELECT count(*) FROM mot.check('again_mot');
DROP FUNCTION bump_back_heap, bump_back_mot, bump_heap, bump_mot;
DROP TABLE again_heap, seen;
DROP FOREIGN TABLE again_mot;
DROP FUNCTION look;
-- Rows keep their makers' ids for ever: one that has the 32 bits of ours is not ours, nor one of the time when we had none.
BEGIN;
SELECT mot.is_own('3'), mot.is_own('4294967299');
SELECT pg_current_xact_id() AS id \gset
SAVEPOINT sub;
CREATE TEMP TABLE made (id int);
SELECT mot.is_own(:'id'), mot.is_own((:id + 4294967296)::text), mot.is_own(xmin::text), mot.is_own((xmin::text::int8 + 4294967296)::text), xmin::text <> :'id' AS is_subtransaction
FROM pg_class WHERE oid = 'made'::regclass;
COMMIT;
SELECT mot.is_own(:'id');
-- A DELETE from several tables of which one has triggers.
CREATE TABLE several (k int, v int) PARTITION BY LIST (k);
CREATE TABLE several_heap PARTITION OF several FOR VALUES IN (1);
CREATE FOREIGN TABLE several_mot PARTITION OF several FOR VALUES IN (2) SERVER mot;
CREATE FOREIGN TABLE several_fires PARTITION OF several FOR VALUES IN (3) SERVER mot;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% of %', TG_OP, OLD; RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER tell BEFORE UPDATE OR DELETE ON several_fires FOR EACH ROW EXECUTE FUNCTION tell();
INSERT INTO several VALUES (1, 1), (2, 2), (3, 3), (2, 4), (3, 5);
UPDATE several SET v = v + 10 WHERE v < 4 RETURNING *;
DELETE FROM several WHERE v > 10 RETURNING *;
DELETE FROM several s USING (VALUES (4), (5)) d(v) WHERE s.v = d.v RETURNING *;
DROP TABLE several;
DROP FUNCTION tell;
