-- What PostgreSQL 18 brought, on memory-optimized tables. Older servers end here.
SELECT current_setting('server_version_num')::int < 180000 AS is_older \gset
\if :is_older
  \quit
\endif
-- same() runs a statement on a memory-optimized table and on its ordinary twin: both must give the same rows, or the same error.
CREATE FUNCTION p18_outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text := ''; r record;
BEGIN
  IF statement ~* '^\s*select|returning' THEN
    FOR r IN EXECUTE statement LOOP result := result || ' ' || r::text; END LOOP;
  ELSE
    EXECUTE statement;
  END IF;
  RETURN 'ok' || result;
EXCEPTION WHEN others THEN
  RETURN sqlstate || ' ' || sqlerrm;
END $$;
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE mine text := p18_outcome(format(statement, 'p18_t')); heap text := p18_outcome(format(statement, 'p18_h'));
BEGIN
  heap := replace(heap, 'p18_h', 'p18_t');
  RETURN CASE WHEN mine = heap THEN 'same: ' || mine ELSE 'DIFFERENT: mot ' || mine || ', heap ' || heap END;
END $$;
-- NOT NULL is a constraint with a name; a primary key makes some.
CREATE FUNCTION constraints(name regclass) RETURNS TABLE (conname text, definition text) LANGUAGE sql AS $$
  SELECT replace(conname, 'p18_h', 'p18_t'), contype::text || ': ' || pg_get_constraintdef(oid) || CASE WHEN convalidated THEN '' ELSE ' not validated' END
  FROM pg_constraint WHERE conrelid = name
$$;
CREATE FOREIGN TABLE p18_t (a int, b int CONSTRAINT named NOT NULL, c int NOT NULL, d int, e int UNIQUE, PRIMARY KEY (a, b)) SERVER mot;
CREATE TABLE p18_h (a int, b int CONSTRAINT named NOT NULL, c int NOT NULL, d int, e int UNIQUE, PRIMARY KEY (a, b));
SELECT * FROM constraints('p18_t') ORDER BY 1;
SELECT * FROM constraints('p18_t') EXCEPT SELECT * FROM constraints('p18_h');
SELECT * FROM constraints('p18_h') EXCEPT SELECT * FROM constraints('p18_t');
SELECT same('INSERT INTO %s VALUES (1, 1, 1, NULL, 1)');
SELECT same('ALTER TABLE %s ALTER a DROP NOT NULL');
SELECT same('ALTER TABLE %s DROP CONSTRAINT named');
SELECT same('ALTER TABLE %s ALTER d SET NOT NULL');
SELECT same('ALTER TABLE %s ADD CONSTRAINT d_there NOT NULL d');
UPDATE p18_t SET d = 1;
UPDATE p18_h SET d = 1;
SELECT same('ALTER TABLE %s ADD CONSTRAINT d_there NOT NULL d');
SELECT same('INSERT INTO %s VALUES (2, 2, 2, NULL, 2)');
SELECT same('ALTER TABLE %1$s DROP CONSTRAINT %1$s_pkey');
SELECT same('INSERT INTO %s VALUES (NULL, 2, 2, 2, 2)');
SELECT same('ALTER TABLE %s ALTER a DROP NOT NULL');
SELECT same('INSERT INTO %s VALUES (NULL, 2, 2, 2, 2)');
SELECT same('ALTER TABLE %s ADD PRIMARY KEY (e)');
SELECT same('ALTER TABLE %s ALTER e DROP NOT NULL');
SELECT * FROM constraints('p18_t') EXCEPT SELECT * FROM constraints('p18_h');
SELECT * FROM constraints('p18_h') EXCEPT SELECT * FROM constraints('p18_t');
SELECT same('SELECT * FROM %s ORDER BY e');
SELECT rows FROM mot.check('p18_t');
-- One that says nothing of old rows would mislead the keys.
ALTER TABLE p18_t ADD CONSTRAINT later NOT NULL a NOT VALID;
CREATE TABLE p18_parent (a int, b int);
CREATE FOREIGN TABLE p18_child () INHERITS (p18_parent) SERVER mot;
INSERT INTO p18_child VALUES (NULL, 1);
ALTER TABLE p18_parent ADD CONSTRAINT later NOT NULL a NOT VALID;
ALTER TABLE p18_parent ADD CONSTRAINT now NOT NULL a;
DELETE FROM p18_child;
ALTER TABLE p18_parent ADD CONSTRAINT now NOT NULL a;
INSERT INTO p18_child VALUES (NULL, 1);
DROP TABLE p18_parent CASCADE;
-- CHECK conditions that are not enforced.
SELECT same('ALTER TABLE %s ADD CONSTRAINT big CHECK (c > 100) NOT ENFORCED');
SELECT same('UPDATE %s SET c = c + 1 RETURNING c');
DROP FOREIGN TABLE p18_t;
DROP TABLE p18_h;
-- Keys of periods
CREATE FOREIGN TABLE p18_t (a int4range, PRIMARY KEY (a WITHOUT OVERLAPS)) SERVER mot;
CREATE FOREIGN TABLE p18_t (a int, b int4range) SERVER mot;
ALTER TABLE p18_t ADD UNIQUE (a, b WITHOUT OVERLAPS);
DROP FOREIGN TABLE p18_t;
-- Columns that are computed when they are read
CREATE FOREIGN TABLE p18_t (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2), w text GENERATED ALWAYS AS ('w' || a) VIRTUAL NOT NULL, s int GENERATED ALWAYS AS (a * 3) STORED,
  CONSTRAINT small CHECK (v < 100)) SERVER mot;
CREATE TABLE p18_h (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2), w text GENERATED ALWAYS AS ('w' || a) VIRTUAL NOT NULL, s int GENERATED ALWAYS AS (a * 3) STORED,
  CONSTRAINT small CHECK (v < 100));
SELECT same('INSERT INTO %s (id, a) SELECT i, i FROM generate_series(1, 5) i');
SELECT same('INSERT INTO %s (id, a) VALUES (6, 50)');
SELECT same('INSERT INTO %s (id, a) VALUES (6, NULL)');
SELECT same('INSERT INTO %s (id, a, v) VALUES (6, 1, 1)');
SELECT same('INSERT INTO %s (id, a) VALUES (6, 6) RETURNING *');
SELECT same('UPDATE %s SET a = a + 10 WHERE v = 4 RETURNING *, old.v, new.v');
SELECT same('UPDATE %s SET a = 50 WHERE id = 1');
SELECT same('UPDATE %s SET a = NULL WHERE id = 1');
SELECT same('UPDATE %s SET v = DEFAULT, id = 7 WHERE id = 6 RETURNING v, id');
SELECT same('DELETE FROM %s WHERE w = ''w3'' RETURNING *');
SELECT same('SELECT t, t.v, (SELECT max(v) FROM %1$s) FROM %1$s t WHERE v > 2 ORDER BY id');
SELECT same('SELECT count(*), sum(x.v) FROM %1$s x JOIN %1$s y ON x.v = y.v');
SELECT same('INSERT INTO %s AS t (id, a) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET a = excluded.a + t.v RETURNING *');
SELECT same('INSERT INTO %s (id, a) VALUES (1, 60) ON CONFLICT (id) DO UPDATE SET a = excluded.a');
SELECT same('ALTER TABLE %s ADD COLUMN x int GENERATED ALWAYS AS (a + 1) VIRTUAL');
SELECT same('ALTER TABLE %s ADD COLUMN y int GENERATED ALWAYS AS (nullif(a, 4)) VIRTUAL NOT NULL');
SELECT same('ALTER TABLE %s ADD CHECK (x < 10)');
SELECT same('ALTER TABLE %s ALTER x SET NOT NULL');
SELECT same('SELECT * FROM %s ORDER BY id');
-- again: what is run often is compiled
SELECT DISTINCT same('INSERT INTO %s (id, a) VALUES (6, 60)') FROM generate_series(1, 4);
CREATE FOREIGN TABLE p18_v (id int PRIMARY KEY, a int, v int GENERATED ALWAYS AS (a * 2), CONSTRAINT small CHECK (v < 100)) SERVER mot;
CREATE PROCEDURE p18_again() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 101..104 LOOP
    BEGIN
      INSERT INTO p18_v (id, a) VALUES (i, CASE WHEN i = 104 THEN 60 ELSE i - 90 END);
    EXCEPTION WHEN check_violation THEN
      RAISE NOTICE '%: %', i, sqlerrm;
    END;
  END LOOP;
  FOR i IN 101..104 LOOP
    BEGIN
      UPDATE p18_v SET a = CASE WHEN i = 103 THEN 60 ELSE i - 91 END WHERE id = i;
    EXCEPTION WHEN check_violation THEN
      RAISE NOTICE '%: %', i, sqlerrm;
    END;
  END LOOP;
END $$;
CALL p18_again();
SELECT * FROM p18_v ORDER BY id;
DROP FOREIGN TABLE p18_v;
-- row triggers, a whole row, an index
CREATE FUNCTION p18_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% old % new %', TG_WHEN, old, new; RETURN new; END $$;
SELECT same('CREATE TRIGGER before BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION p18_note()');
SELECT same('CREATE TRIGGER after AFTER UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION p18_note()');
SELECT same('UPDATE %s t SET a = a + 1 WHERE id = 5 RETURNING t, old.v');
CREATE INDEX ON p18_t (v);
ALTER TABLE p18_t ADD UNIQUE (v);
CREATE INDEX ON p18_t (s);
EXPLAIN (COSTS OFF) SELECT * FROM p18_t WHERE s = 30;
ALTER TABLE p18_t ALTER v SET EXPRESSION AS (a * 5);
ANALYZE p18_t;
SELECT attname FROM pg_stats WHERE tablename = 'p18_t' ORDER BY 1;
COPY p18_t (id, a) FROM stdin;
201	1
202	60
\.
COPY p18_t (id, a) FROM stdin;
201	1
\.
SELECT * FROM p18_t WHERE id = 201;
SELECT rows FROM mot.check('p18_t');
DROP FOREIGN TABLE p18_t;
DROP TABLE p18_h;
-- RETURNING old and new
CREATE FOREIGN TABLE p18_t (id int PRIMARY KEY, a int) SERVER mot;
CREATE TABLE p18_h (id int PRIMARY KEY, a int);
SELECT same('INSERT INTO %s VALUES (1, 1), (2, 2) RETURNING old, new, old.a, new.a');
SELECT same('UPDATE %s SET a = a + 1 RETURNING old.a, new.a, old, new, id');
SELECT same('UPDATE %s t SET a = x.a FROM (VALUES (1, 10)) x(id, a) WHERE x.id = t.id RETURNING old.a, new.a, x.a');
SELECT same('UPDATE %s SET a = a + 1 WHERE id = 1 RETURNING WITH (OLD AS o, NEW AS n) o.a, n.a');
SELECT same('DELETE FROM %s WHERE id = 2 RETURNING old.a, new.a, new IS NULL');
SELECT same('INSERT INTO %s VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING new.a, a');
SELECT same('INSERT INTO %s VALUES (1, 5) ON CONFLICT (id) DO NOTHING RETURNING old.a');
INSERT INTO p18_t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING old.a;
INSERT INTO p18_t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING old IS NULL;
SELECT same('SELECT * FROM %s');
-- The old row's system columns, too.
WITH before AS (SELECT id, ctid AS place, xmin AS maker FROM p18_t), changed AS (UPDATE p18_t SET a = a + 1 RETURNING id, old.ctid AS place, old.xmin AS maker)
SELECT count(*), count(*) FILTER (WHERE before.place = changed.place AND before.maker = changed.maker) AS same FROM before JOIN changed USING (id);
-- A join that gives nothing is left out: the planner believes our unique indexes.
EXPLAIN (COSTS OFF) SELECT h.a FROM p18_h h LEFT JOIN p18_t t ON t.id = h.a;
-- COPY gives up when too much is wrong.
COPY p18_t FROM stdin WITH (ON_ERROR ignore, REJECT_LIMIT 1);
7	7
8	eight
9	nine
\.
SELECT rows FROM mot.check('p18_t');
DROP FOREIGN TABLE p18_t;
DROP TABLE p18_h;
DROP FUNCTION same, p18_outcome, p18_note, constraints;
DROP PROCEDURE p18_again;
-- INHERIT of a constraint reaches children, of whom nobody has asked it: ONLY is not listened to.
CREATE TABLE p18_parent (a int);
CREATE FOREIGN TABLE p18_child () INHERITS (p18_parent) SERVER mot;
INSERT INTO p18_child VALUES (NULL);
ALTER TABLE p18_parent ADD CONSTRAINT nn NOT NULL a NO INHERIT, ALTER CONSTRAINT nn INHERIT;
ALTER TABLE p18_parent ADD CONSTRAINT nn NOT NULL a NO INHERIT;
ALTER TABLE ONLY p18_parent ALTER CONSTRAINT nn INHERIT;
DELETE FROM p18_child;
ALTER TABLE p18_parent ALTER CONSTRAINT nn INHERIT;
INSERT INTO p18_child VALUES (NULL);
DROP TABLE p18_parent CASCADE;
-- Pruning as the executor starts leaves relations out: what was planned for the others is theirs.
CREATE TABLE p18_parted (k int, v int) PARTITION BY LIST (k);
CREATE TABLE p18_heap PARTITION OF p18_parted FOR VALUES IN (1);
CREATE FOREIGN TABLE p18_mot PARTITION OF p18_parted FOR VALUES IN (2) SERVER mot;
CREATE FOREIGN TABLE p18_fires PARTITION OF p18_parted FOR VALUES IN (3) SERVER mot;
CREATE FUNCTION p18_tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% of %', TG_OP, OLD; RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER tell BEFORE UPDATE OR DELETE ON p18_fires FOR EACH ROW EXECUTE FUNCTION p18_tell();
INSERT INTO p18_parted VALUES (1, 1), (2, 2), (3, 3);
SET my.k = '2';
UPDATE p18_parted SET v = v + 1 WHERE k = current_setting('my.k')::int RETURNING *;
DELETE FROM p18_parted WHERE k = current_setting('my.k')::int RETURNING *;
SET my.k = '3';
UPDATE p18_parted SET v = v + 1 WHERE k = current_setting('my.k')::int RETURNING *;
DELETE FROM p18_parted WHERE k = current_setting('my.k')::int RETURNING *;
SET plan_cache_mode = force_generic_plan;
INSERT INTO p18_parted VALUES (2, 2), (3, 3);
PREPARE p18_change (int) AS UPDATE p18_parted SET v = v + 1 WHERE k = $1 RETURNING *;
EXECUTE p18_change (3);
EXECUTE p18_change (2);
EXECUTE p18_change (1);
DEALLOCATE p18_change;
RESET plan_cache_mode;
RESET my.k;
DROP TABLE p18_parted;
DROP FUNCTION p18_tell;
