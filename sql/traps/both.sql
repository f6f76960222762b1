-- Run by am_traps.sql for each access method, which :method names.
SELECT 'am_traps_' || :'method' AS schema \gset
CREATE SCHEMA :schema;
SET search_path = :schema, am_traps;
SET default_table_access_method = :method;

-- A deferred foreign key asks about the row as it is in the end.
CREATE TABLE parent (id int PRIMARY KEY, n int DEFAULT 0);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
INSERT INTO parent SELECT generate_series(1, 10);
BEGIN;
INSERT INTO child VALUES (1, 100);
DELETE FROM child WHERE id = 1;
INSERT INTO child VALUES (2, 100);
UPDATE child SET parent = 2 WHERE id = 2;
INSERT INTO child VALUES (3, 3);
UPDATE child SET parent = 300 WHERE id = 3;
UPDATE child SET parent = 4 WHERE id = 3;
SAVEPOINT s;
INSERT INTO child VALUES (4, 400);
UPDATE child SET parent = 500 WHERE id = 2;
ROLLBACK TO s;
INSERT INTO child VALUES (5, 11);
INSERT INTO parent VALUES (11);
DELETE FROM parent WHERE id = 5;
INSERT INTO parent VALUES (5);
COMMIT;
INSERT INTO seen SELECT :'method', '01 deferred keys', string_agg(child::text, ' ' ORDER BY id) FROM child;
BEGIN;
INSERT INTO child VALUES (6, 600);
SELECT attempt('SET CONSTRAINTS ALL IMMEDIATE') AS result \gset
ROLLBACK;
INSERT INTO seen VALUES (:'method', '02 deferred key without a parent', :'result');
INSERT INTO seen SELECT :'method', '03 referenced parent', attempt('DELETE FROM parent WHERE id = 2; SET CONSTRAINTS ALL IMMEDIATE');

-- Triggers at the end of the transaction have the versions of their events.
CREATE TABLE noted (at int GENERATED ALWAYS AS IDENTITY, note text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO noted (note) VALUES (concat(TG_OP, OLD, NEW));
  RETURN NULL;
END $$;
CREATE TABLE events (id int PRIMARY KEY, v text);
CREATE CONSTRAINT TRIGGER later AFTER INSERT OR UPDATE OR DELETE ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO events VALUES (1, 'before');
BEGIN;
UPDATE events SET v = v || ' 1' WHERE id = 1;
UPDATE events SET id = 2 WHERE id = 1;
SAVEPOINT s;
UPDATE events SET v = 'lost' WHERE id = 2;
DELETE FROM events;
ROLLBACK TO s;
UPDATE events SET v = v || ' 2' WHERE id = 2;
DELETE FROM events WHERE id = 2;
INSERT INTO events VALUES (2, 'again');
COMMIT;
INSERT INTO seen SELECT :'method', '04 deferred triggers', string_agg(note, ' ' ORDER BY at) FROM noted;

-- RETURNING tells an inserted row from an updated one.
CREATE TABLE upserted (id int PRIMARY KEY, v int);
INSERT INTO upserted VALUES (1, 1);
WITH rows AS (INSERT INTO upserted VALUES (1, 10), (2, 20) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v RETURNING id, xmax = 0 AS is_new, xmin = pg_current_xact_id()::xid AS is_own)
INSERT INTO seen SELECT :'method', '05 xmax in RETURNING', string_agg(rows::text, ' ' ORDER BY id) FROM rows;

-- TRUNCATE among savepoints, of a table of the transaction and of an older one.
BEGIN;
CREATE TABLE emptied (id int PRIMARY KEY);
INSERT INTO emptied VALUES (1);
TRUNCATE emptied;
INSERT INTO emptied VALUES (1), (2);
SAVEPOINT s;
INSERT INTO emptied VALUES (3);
TRUNCATE emptied;
INSERT INTO emptied VALUES (1), (4);
ROLLBACK TO s;
INSERT INTO emptied VALUES (5);
COMMIT;
INSERT INTO seen SELECT :'method', '06 TRUNCATE in the table''s transaction', string_agg(id::text, ' ' ORDER BY id) FROM emptied;
BEGIN;
INSERT INTO emptied VALUES (6);
SAVEPOINT s;
INSERT INTO emptied VALUES (7);
TRUNCATE emptied;
INSERT INTO emptied VALUES (7);
ROLLBACK TO s;
INSERT INTO emptied VALUES (8);
COMMIT;
INSERT INTO seen SELECT :'method', '07 TRUNCATE rolled back', string_agg(id::text, ' ' ORDER BY id) FROM emptied;
BEGIN;
INSERT INTO emptied VALUES (9);
TRUNCATE emptied;
INSERT INTO emptied VALUES (9), (10);
TRUNCATE emptied;
INSERT INTO emptied VALUES (11);
SAVEPOINT s;
INSERT INTO emptied VALUES (12);
RELEASE s;
COMMIT;
INSERT INTO seen SELECT :'method', '08 TRUNCATE twice', string_agg(id::text, ' ' ORDER BY id) FROM emptied;

-- A storage is replaced in a transaction that has changed it.
CREATE TABLE replaced (id int PRIMARY KEY, v int);
INSERT INTO replaced SELECT g, g FROM generate_series(1, 5) g;
BEGIN;
INSERT INTO replaced VALUES (6, 6);
UPDATE replaced SET v = -v WHERE id < 3;
ALTER TABLE replaced ALTER v TYPE text USING 'v' || v;
DELETE FROM replaced WHERE id = 4;
SAVEPOINT s;
INSERT INTO replaced VALUES (7, 'lost');
ALTER TABLE replaced ALTER v TYPE varchar(4), ALTER id TYPE bigint;
INSERT INTO replaced VALUES (8, 'lost');
ROLLBACK TO s;
INSERT INTO replaced VALUES (9, 'v9');
COMMIT;
INSERT INTO seen SELECT :'method', '09 rewritten beside changes', string_agg(replaced::text, ' ' ORDER BY id) FROM replaced;
BEGIN;
UPDATE replaced SET v = v || '!' WHERE id = 9;
ALTER TABLE replaced SET ACCESS METHOD heap;
UPDATE replaced SET v = v || '?' WHERE id = 9;
ALTER TABLE replaced SET ACCESS METHOD :method;
UPDATE replaced SET v = v || '.' WHERE id = 9;
COMMIT;
INSERT INTO seen SELECT :'method', '10 access methods changed', string_agg(replaced::text, ' ' ORDER BY id) FROM replaced;

-- A table that becomes a heap table has room for long values.
CREATE TABLE long (id int PRIMARY KEY, v text);
INSERT INTO long SELECT 1, string_agg(md5(g::text), '') FROM generate_series(1, 1000) g;
BEGIN;
ALTER TABLE long SET ACCESS METHOD heap;
INSERT INTO long SELECT 2, string_agg(md5(g::text), '') FROM generate_series(1, 5000) g;
COMMIT;
ALTER TABLE long ADD COLUMN more text;
ALTER TABLE long ALTER more SET STORAGE external;
UPDATE long SET more = v;
INSERT INTO seen SELECT :'method', '11 long values', string_agg(concat(id, ' ', length(v), ' ', length(more)), ', ' ORDER BY id) FROM long;
INSERT INTO seen SELECT :'method', '12 has a TOAST table', (reltoastrelid <> 0)::text FROM pg_class WHERE oid = 'long'::regclass;
ALTER TABLE long SET ACCESS METHOD :method;
INSERT INTO seen SELECT :'method', '13 long values back', string_agg(concat(id, ' ', length(v), ' ', length(more)), ', ' ORDER BY id) FROM long;

-- The planner looks at the ends of an index, behind which dead and unfinished rows lie.
CREATE TABLE hidden (id int PRIMARY KEY, n int);
INSERT INTO hidden SELECT g, g FROM generate_series(1, 10000) g;
ANALYZE hidden;
DELETE FROM hidden WHERE id > 9000;
INSERT INTO seen SELECT :'method', '14 estimate at an end with dead rows', (expected_rows('SELECT FROM hidden WHERE id > 9500') < 1000)::text;
BEGIN;
INSERT INTO hidden SELECT g, g FROM generate_series(20001, 40000) g;
SELECT expected_rows('SELECT FROM hidden WHERE id > 30000') > 1000 AS result \gset
ROLLBACK;
INSERT INTO seen VALUES (:'method', '15 estimate with own rows at an end', :'result');
INSERT INTO seen SELECT :'method', '16 estimate after a rollback', (expected_rows('SELECT FROM hidden WHERE id > 30000') < 1000)::text;

-- The planner knows the transaction's own rows, also after ANALYZE.
CREATE TABLE counted (id int);
INSERT INTO counted SELECT generate_series(1, 100);
BEGIN;
INSERT INTO counted SELECT generate_series(101, 20000);
ANALYZE counted;
INSERT INTO seen SELECT :'method', '17 own rows after ANALYZE', expected_rows('SELECT FROM counted')::text;
COMMIT;
INSERT INTO seen SELECT :'method', '18 the same after COMMIT', expected_rows('SELECT FROM counted')::text;

-- More parents are locked in a transaction than the shared lock table has places, which prepared transactions keep. Others change them, but not their keys.
CREATE TABLE many (id int PRIMARY KEY, n int DEFAULT 0);
INSERT INTO many SELECT generate_series(1, 100000);
CREATE TABLE many_children (id int PRIMARY KEY, parent int REFERENCES many);
BEGIN;
INSERT INTO many_children SELECT g, g FROM generate_series(1, 100000) g;
UPDATE many SET n = n + 1 WHERE id = 5;
COMMIT;
BEGIN;
SELECT count(*) = 100000 AS result FROM (SELECT FROM many FOR KEY SHARE) locked \gset
\set prepared 'traps ' :method
PREPARE TRANSACTION :'prepared';
INSERT INTO seen VALUES (:'method', '19 parents locked', :'result' || ', prepared: ' || :'SQLSTATE');
SET lock_timeout = '1ms';
UPDATE many SET n = n + 1 WHERE id = 6;
INSERT INTO seen SELECT :'method', '20 locked in a prepared transaction: DELETE', attempt('DELETE FROM many_children WHERE id = 7; DELETE FROM many WHERE id = 7');
INSERT INTO seen SELECT :'method', '21 locked in a prepared transaction: UPDATE', attempt('UPDATE many SET n = n + 1 WHERE id = 8');
RESET lock_timeout;
COMMIT PREPARED :'prepared';
INSERT INTO seen SELECT :'method', '22 no more: DELETE', attempt('DELETE FROM many_children WHERE id = 7; DELETE FROM many WHERE id = 7');
INSERT INTO seen SELECT :'method', '23 rows and children', concat(count(*), ' ', sum(n), ' ', (SELECT count(*) FROM many_children)) FROM many;

-- The proposed row is a BEFORE trigger's, and a WITH part that has triggers, too, runs beside it.
CREATE TABLE proposed (id int PRIMARY KEY, v text);
CREATE FUNCTION lengthen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || ', longer'; RETURN NEW; END $$;
CREATE TRIGGER lengthen BEFORE INSERT OR UPDATE ON proposed FOR EACH ROW EXECUTE FUNCTION lengthen();
INSERT INTO proposed VALUES (1, 'one'), (2, 'two');
WITH part AS (INSERT INTO proposed SELECT g, repeat('z', 100) FROM generate_series(10, 20) g RETURNING id)
INSERT INTO proposed AS t VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET v = (SELECT count(*) FROM part) || excluded.v;
WITH part AS (INSERT INTO proposed VALUES (30, repeat('y', 100)) RETURNING id)
INSERT INTO proposed AS t VALUES (2, 'newer') ON CONFLICT (id) DO UPDATE SET v = excluded.v WHERE (SELECT count(*) FROM part WHERE id > t.id) > 0;
INSERT INTO seen SELECT :'method', '24 EXCLUDED of a trigger', string_agg(proposed::text, ' ' ORDER BY id) FROM proposed WHERE id < 10;
CREATE TABLE proposed_parted (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE proposed_part PARTITION OF proposed_parted FOR VALUES FROM (0) TO (100);
CREATE TRIGGER lengthen BEFORE INSERT OR UPDATE ON proposed_parted FOR EACH ROW EXECUTE FUNCTION lengthen();
INSERT INTO proposed_parted VALUES (1, 'one');
WITH part AS (INSERT INTO proposed SELECT g, repeat('x', 100) FROM generate_series(40, 50) g RETURNING id),
  upserted AS (INSERT INTO proposed_parted AS t VALUES (1, 'new') ON CONFLICT (id) DO UPDATE SET v = (SELECT count(*) FROM part) || excluded.v RETURNING *)
INSERT INTO seen SELECT :'method', '25 the same in partitions, in WITH', upserted::text FROM upserted;
RESET default_table_access_method;
