-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_mixed_heap;
CREATE SCHEMA fdw_mixed_heap_heap;
SET search_path = fdw_mixed_heap, pg_catalog;
CREATE FUNCTION outcome(place text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text := ''; n bigint := 0; r record;
BEGIN
  PERFORM set_config('search_path', place || ', pg_catalog', true);
  IF statement ~* '^\s*(select|with|values|table)|returning' THEN
    FOR r IN EXECUTE statement LOOP n := n + 1; result := result || r::text || E'\n'; END LOOP;
  ELSE
    EXECUTE statement;
    GET DIAGNOSTICS n = ROW_COUNT;
  END IF;
  RETURN n || ' rows' || E'\n' || result;
EXCEPTION WHEN others THEN
  RETURN 'error ' || sqlstate || ': ' || sqlerrm || E'\n';
END $$;
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE mine text := fdw_mixed_heap.outcome('fdw_mixed_heap', statement); heap text := fdw_mixed_heap.outcome('fdw_mixed_heap_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_mixed_heap, pg_catalog', true);
  IF statement !~* 'order by' THEN
    mine := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(mine, E'\n') line);
    heap := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(heap, E'\n') line);
  END IF;
  IF mine IS DISTINCT FROM heap THEN
    RETURN 'DIFFERENT' || E'\n-- mot:\n' || left(mine, 2000) || E'\n-- heap:\n' || left(heap, 2000);
  END IF;
  RETURN 'same: ' || coalesce((regexp_match(mine, '(\d+ rows|error [^\n]*)'))[1], mine);
END $$;
-- The same table in both places.
CREATE FUNCTION twin(name text, columns text, VARIADIC indexes text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE i text;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE fdw_mixed_heap.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_mixed_heap_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_mixed_heap.' || name);
    EXECUTE format(i, 'fdw_mixed_heap_heap.' || name);
  END LOOP;
END $$;
-- Memory-optimized and ordinary tables in one statement and in one transaction.
CREATE TABLE h (id int PRIMARY KEY, v text);
CREATE FOREIGN TABLE m (id int PRIMARY KEY, v text) SERVER mot;
BEGIN;
INSERT INTO h SELECT i, 'h' || i FROM generate_series(1, 100) i;
INSERT INTO m SELECT id, 'm' || id FROM h WHERE id % 2 = 0;
COMMIT;
SELECT count(*) FROM h JOIN m USING (id);
SELECT count(*) FROM h LEFT JOIN m USING (id) WHERE m.id IS NULL;
-- together or not at all
BEGIN;
UPDATE h SET v = 'x' WHERE id = 2;
UPDATE m SET v = 'x' WHERE id = 2;
SAVEPOINT s;
UPDATE h SET v = 'y' WHERE id = 2;
UPDATE m SET v = 'y' WHERE id = 2;
ROLLBACK TO s;
SELECT h.v, m.v FROM h JOIN m USING (id) WHERE id = 2;
ROLLBACK;
SELECT h.v, m.v FROM h JOIN m USING (id) WHERE id = 2;
-- one changes the other
UPDATE m SET v = h.v FROM h WHERE h.id = m.id AND m.id < 10;
UPDATE h SET v = m.v || '!' FROM m WHERE h.id = m.id AND m.id < 10;
SELECT h.v, m.v FROM h JOIN m USING (id) WHERE id < 10 ORDER BY id;
DELETE FROM h USING m WHERE h.id = m.id AND m.id > 90;
DELETE FROM m WHERE id NOT IN (SELECT id FROM h);
WITH moved AS (DELETE FROM m WHERE id BETWEEN 20 AND 30 RETURNING *) INSERT INTO h SELECT id + 1000, v FROM moved;
WITH gone AS (DELETE FROM h WHERE id > 1000 RETURNING *), back AS (INSERT INTO m SELECT id - 1000, v FROM gone RETURNING id) SELECT count(*), sum(id) FROM back;
SELECT (SELECT count(*) FROM h), (SELECT count(*) FROM m);
INSERT INTO m SELECT * FROM h WHERE id < 10 ON CONFLICT (id) DO UPDATE SET v = m.v || '+';
SELECT count(*), count(*) FILTER (WHERE v LIKE '%+') FROM m;
-- triggers across
CREATE FUNCTION to_m() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO m VALUES (NEW.id, NEW.v); RETURN NEW; END $$;
CREATE TRIGGER t AFTER INSERT ON h FOR EACH ROW EXECUTE FUNCTION to_m();
INSERT INTO h VALUES (2001, 'a'), (2002, 'b');
SELECT * FROM m WHERE id > 2000 ORDER BY id;
INSERT INTO h VALUES (2003, 'c'), (2001, 'd');
INSERT INTO m VALUES (2004, 'in the way');
INSERT INTO h VALUES (2005, 'e'), (2004, 'f');
SELECT (SELECT count(*) FROM h WHERE id > 2000), (SELECT count(*) FROM m WHERE id > 2000);
-- a deferred constraint of the ordinary table takes both back
CREATE TABLE child (id int REFERENCES h DEFERRABLE INITIALLY DEFERRED);
BEGIN;
INSERT INTO m VALUES (3000, 'never');
INSERT INTO child VALUES (-1);
COMMIT;
SELECT count(*) FROM m WHERE id = 3000;
INSERT INTO m VALUES (3000, 'now');
-- after a logged and aborted change, the row goes on living
BEGIN;
UPDATE m SET v = 'lost' WHERE id = 3000;
INSERT INTO child VALUES (-1);
COMMIT;
UPDATE m SET v = v || '!' WHERE id = 3000 RETURNING *;
-- partitions of both kinds
CREATE TABLE p (id int, v text) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE pm PARTITION OF p FOR VALUES FROM (0) TO (100) SERVER mot;
CREATE TABLE ph PARTITION OF p FOR VALUES FROM (100) TO (200);
INSERT INTO p SELECT i * 10, 'v' || i FROM generate_series(0, 19) i;
SELECT tableoid::regclass, count(*), sum(id) FROM p GROUP BY 1 ORDER BY 1;
UPDATE p SET v = 'u' WHERE id IN (50, 150) RETURNING tableoid::regclass, id;
DELETE FROM p WHERE id IN (60, 160) RETURNING tableoid::regclass, id;
SELECT id FROM p WHERE id > 80 AND id < 120 ORDER BY id FOR UPDATE;
-- two phases
BEGIN;
INSERT INTO m VALUES (4000, 'prepared');
PREPARE TRANSACTION 'mixed_heap';
SELECT count(*) FROM m WHERE id = 4000;
COMMIT PREPARED 'mixed_heap';
SELECT count(*) FROM m WHERE id = 4000;
BEGIN;
SELECT count(*) > 0 FROM m;
INSERT INTO h VALUES (-5, 'only heap was written');
ROLLBACK;
SELECT (mot.check('m')).rows AS m, (mot.check('pm')).rows AS pm;
