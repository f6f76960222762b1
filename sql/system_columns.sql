-- System columns: those of a heap table of the same history, wherever an expression can ask for them.
CREATE SCHEMA system_columns;
SET search_path = system_columns;
CREATE FOREIGN TABLE m (id int PRIMARY KEY, a int NOT NULL, t text) SERVER mot;
CREATE TABLE h (id int PRIMARY KEY, a int NOT NULL, t text);
CREATE INDEX ON m (a);
CREATE INDEX ON h (a);

-- What a query gives of both tables, command numbers from the least one on; xmin only whether it is this transaction's.
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE of_m text; of_h text;
BEGIN
  EXECUTE format('WITH q AS (%s) SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM q', replace(query, 'TABLE', 'm')) INTO of_m;
  EXECUTE format('WITH q AS (%s) SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM q', replace(query, 'TABLE', 'h')) INTO of_h;
  RETURN CASE WHEN of_m IS NOT DISTINCT FROM of_h THEN 'same: ' || coalesce(of_m, 'nothing') ELSE 'MOT: ' || of_m || ' heap: ' || of_h END;
END $$;

-- Rows of several commands of one transaction: their numbers lie where a heap tuple has them.
BEGIN;
INSERT INTO m VALUES (1, 10, 'one'); INSERT INTO h VALUES (1, 10, 'one');
INSERT INTO m VALUES (2, 20, repeat('long', 100)); INSERT INTO h VALUES (2, 20, repeat('long', 100));
INSERT INTO m SELECT i, i * 10 FROM generate_series(3, 6) i; INSERT INTO h SELECT i, i * 10 FROM generate_series(3, 6) i;
SELECT id, xmax, cmin::text::int - min(cmin::text::int) OVER () AS cmin, cmax::text::int - min(cmax::text::int) OVER () AS cmax, xmin::text = pg_current_xact_id()::xid::text AS mine FROM m ORDER BY id;
SELECT id, xmax, cmin::text::int - min(cmin::text::int) OVER () AS cmin, cmax::text::int - min(cmax::text::int) OVER () AS cmax, xmin::text = pg_current_xact_id()::xid::text AS mine FROM h ORDER BY id;
COMMIT;

SELECT same('SELECT id, xmax, xmin::text::int8 > 2 AS made FROM TABLE');
SELECT same('SELECT id FROM TABLE WHERE xmax = 0');
SELECT same('SELECT id FROM TABLE WHERE xmax = 0 AND id = 3');
SELECT same('SELECT id FROM TABLE WHERE a BETWEEN 20 AND 40 AND xmax <> 0');
SELECT same('SELECT count(*), max(id) FROM TABLE WHERE xmax = 0');
SELECT same('SELECT xmax, count(*), sum(a) FROM TABLE GROUP BY xmax');
SELECT same('SELECT max(xmax::text::int8) AS most, count(*) FILTER (WHERE xmax = 0) AS whole FROM TABLE');
SELECT same('SELECT x.id, y.xmax FROM TABLE x JOIN TABLE y ON y.id = x.id AND y.xmax = x.xmax');
SELECT same('SELECT id, (SELECT y.xmax FROM TABLE y WHERE y.id = x.id) AS inner FROM TABLE x ORDER BY xmax::text, id LIMIT 3');
SELECT same('SELECT DISTINCT xmax FROM TABLE');
SELECT same('SELECT id, xmax FROM (SELECT id, xmax FROM TABLE ORDER BY a DESC OFFSET 1) q');
-- Locked rows, with another command's number in them.
BEGIN;
SELECT id, xmax FROM m WHERE id < 3 ORDER BY id FOR UPDATE;
ROLLBACK;
-- Prepared, and in a function's loop: the compiled statement and the general one.
PREPARE by_key(int) AS SELECT id, xmax, xmin::text::int8 > 2 AS made FROM m WHERE id = $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_key(2);
EXECUTE by_key(5);
DO $$
DECLARE wrong int := 0; seen xid;
BEGIN
  FOR i IN 1..6 LOOP
    SELECT xmax INTO seen FROM m WHERE id = i;
    wrong := wrong + (seen <> 0::text::xid)::int;
    UPDATE m SET a = a WHERE id = i AND xmax = 0;
    SELECT xmax INTO seen FROM m WHERE id = i;
    wrong := wrong + (seen <> 0::text::xid)::int;
  END LOOP;
  RAISE NOTICE 'wrong: %', wrong;
END $$;
RESET plan_cache_mode;

-- Changes: in conditions, in new values and in RETURNING.
BEGIN;
SELECT same('INSERT INTO TABLE VALUES (7, 70) RETURNING id, xmax, cmin IS NOT NULL AS numbered, xmin::text = pg_current_xact_id()::xid::text AS mine');
SELECT same('UPDATE TABLE SET a = a + 1 WHERE id = 7 RETURNING id, a, xmax, cmin IS NOT NULL AS numbered');
SELECT same('UPDATE TABLE SET a = a + 1 WHERE id < 3 AND xmax = 0 RETURNING id, a, xmax');
SELECT same('UPDATE TABLE SET a = a + xmax::text::int WHERE id IN (4, 5) RETURNING id, a');
SELECT same('UPDATE TABLE SET t = ''from ''|| x.id FROM TABLE x WHERE x.id = TABLE.id - 1 AND x.xmax = 0 AND TABLE.id = 4 RETURNING TABLE.id, TABLE.xmax, x.id AS other');
SELECT same('INSERT INTO TABLE VALUES (7, 71), (8, 80) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING id, a, xmax = 0 AS is_new');
SELECT same('INSERT INTO TABLE VALUES (8, 81) ON CONFLICT (id) DO UPDATE SET a = excluded.a WHERE TABLE.xmin::text = pg_current_xact_id()::xid::text RETURNING id, a');
-- A deleted row has its deleter in a heap table, and not here.
DELETE FROM m WHERE id = 6 AND xmax = 0 RETURNING id, a, xmin::text::int8 > 2 AS made, cmin IS NOT NULL AS numbered;
DELETE FROM h WHERE id = 6;
SELECT same('SELECT id, a, t IS NOT NULL AS has_text FROM TABLE');
ROLLBACK;

-- A view's CHECK OPTION, in a transaction's later commands.
CREATE VIEW vm AS SELECT * FROM m WHERE xmax = 0 AND cmin IS NOT NULL WITH CHECK OPTION;
CREATE VIEW vh AS SELECT * FROM h WHERE xmax = 0 AND cmin IS NOT NULL WITH CHECK OPTION;
BEGIN;
SELECT same('INSERT INTO vTABLE VALUES (20, 1, ''a''), (21, 1, ''b'') RETURNING id');
INSERT INTO vm VALUES (22, 1, 'c');
INSERT INTO vm SELECT id + 100, a, t FROM m;
UPDATE vm SET a = a + 1;
UPDATE vm SET a = a + 1 WHERE id = 22;
-- Refused: by the check option, or in newer minor versions because the row in the way is not the
-- view's.
DO $$ BEGIN
  INSERT INTO vm VALUES (22, 9, 'd') ON CONFLICT (id) DO UPDATE SET a = excluded.a;
EXCEPTION WHEN with_check_option_violation OR object_not_in_prerequisite_state THEN RAISE NOTICE 'refused';
END $$;
SELECT id, a FROM m WHERE id BETWEEN 20 AND 22 ORDER BY id;
ROLLBACK;

-- Rows that others keep whole: they are copies. All of one command, after others.
CREATE FUNCTION show_new() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE NOTICE '% %: xmax % cmin %', TG_TABLE_NAME, NEW.id, NEW.xmax, coalesce(NEW.cmin::text::int, 0) < 1000; RETURN NEW; END $$;
CREATE TABLE h2 (LIKE h);
CREATE FOREIGN TABLE m2 (id int PRIMARY KEY, a int NOT NULL, t text) SERVER mot;
CREATE TRIGGER show BEFORE INSERT ON h2 FOR EACH ROW EXECUTE FUNCTION show_new();
CREATE TRIGGER show BEFORE INSERT ON m2 FOR EACH ROW EXECUTE FUNCTION show_new();
BEGIN;
UPDATE m SET a = a + 1;
UPDATE m SET a = a + 1;
DO $$
DECLARE r record; one m; c CURSOR FOR SELECT * FROM m;
BEGIN
  FOR r IN SELECT * FROM m LOOP
    RAISE NOTICE 'loop %: xmax % cmin %', r.id, r.xmax, r.cmin::text::int < 1000;
  END LOOP;
  SELECT * INTO r FROM m WHERE id = 2;
  RAISE NOTICE 'one: xmax % cmin % xmin %', r.xmax, r.cmin::text::int < 1000, r.xmin = pg_current_xact_id()::xid;
  SELECT * INTO one FROM m WHERE id = 2;
  RAISE NOTICE 'typed: % xmax % cmin %', one.id, one.xmax, one.cmin::text::int < 1000;
  EXECUTE 'SELECT * FROM m WHERE a > 0 ORDER BY id LIMIT 1' INTO r;
  RAISE NOTICE 'executed: xmax % cmin %', r.xmax, coalesce(r.cmin::text::int, 0) < 1000;
  OPEN c;
  FETCH c INTO r;
  RAISE NOTICE 'fetched: xmax % cmin %', r.xmax, r.cmin::text::int < 1000;
  CLOSE c;
END $$;
INSERT INTO h2 SELECT * FROM m WHERE id < 3;
INSERT INTO m2 SELECT * FROM m WHERE id < 3;
SELECT id, xmax FROM h2;
ROLLBACK;

-- Triggers.
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %: %', TG_WHEN, TG_OP, TG_NAME, OLD.id; RETURN NEW; END $$;
CREATE TRIGGER whole BEFORE UPDATE ON m FOR EACH ROW WHEN (OLD.id < 3) EXECUTE FUNCTION tell();
BEGIN;
UPDATE m SET a = 0 WHERE id = 1 RETURNING id, xmax <> 0 AS locked, cmin IS NOT NULL AS numbered;
UPDATE m SET a = 1 WHERE id = 1 AND xmax = 0 RETURNING id, a;
ROLLBACK;
DROP TRIGGER whole ON m;

-- Partitions.
CREATE TABLE p (id int, a int) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) SERVER mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
BEGIN;
SELECT 1 AS command;
INSERT INTO p VALUES (1, 1), (11, 1);
SELECT tableoid::regclass, id, xmax, ctid FROM p ORDER BY id;
SELECT count(*) FROM p WHERE xmax = 0;
COMMIT;

-- A row that was copied whole, and columns after rows that others keep.
CREATE TABLE kept AS SELECT m AS row, xmax AS mark, ctid AS place FROM m WHERE id < 3;
SELECT (row).id, (row).a, mark, place FROM kept ORDER BY 1;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, xmax FROM m ORDER BY id;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
SELECT rows FROM mot.check('m');
DROP SCHEMA system_columns CASCADE;
