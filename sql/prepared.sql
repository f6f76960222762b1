-- This file belongs to mot_engine/src/transaction and mot_ext/src/transaction/xact.rs: PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED.
-- Definitions: am_prepared. Restarts and promotions with prepared transactions are in ha/t/008_prepared.pl.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA prepared;
SET search_path = prepared, pg_catalog;
CREATE FOREIGN TABLE m (id int PRIMARY KEY, k int NOT NULL, v text) SERVER mot;
CREATE INDEX m_k ON m (k);
CREATE TABLE h (id int PRIMARY KEY, v text);
INSERT INTO m SELECT i, i * 10, 'old' FROM generate_series(1, 5) i;
INSERT INTO h SELECT i, 'old' FROM generate_series(1, 5) i;
-- Checks the table (nobody may hold it) and shows it, by the table and by each index.
CREATE FUNCTION show() RETURNS SETOF text LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY SELECT 'check ' || (mot.check('prepared.m')).rows;
  RETURN QUERY SELECT format('%s %s %s', id, k, v) FROM prepared.m WHERE k > -100 ORDER BY id;
END $$;

-- Committed by nobody's session in particular.
BEGIN;
UPDATE m SET v = 'new', k = -1 WHERE id = 1;
UPDATE m SET v = 'newer' WHERE id = 1;
DELETE FROM m WHERE id = 2;
INSERT INTO m VALUES (6, 60, 'new');
UPDATE h SET v = 'new' WHERE id = 1;
SAVEPOINT s;
UPDATE m SET v = 'never' WHERE id = 3;
ROLLBACK TO s;
SAVEPOINT s2;
UPDATE m SET v = 'in a savepoint' WHERE id = 4;
RELEASE s2;
PREPARE TRANSACTION 'one';
-- Nothing of it is seen, and it holds its rows and keys.
SELECT id, k, v FROM m ORDER BY id;
SET lock_timeout = '50ms';
UPDATE m SET v = 'mine' WHERE id = 1;
DELETE FROM m WHERE id = 2;
SELECT id FROM m WHERE id = 4 FOR KEY SHARE;
SELECT id FROM m WHERE id = 1 FOR UPDATE NOWAIT;
SELECT id FROM m ORDER BY id FOR UPDATE SKIP LOCKED;
INSERT INTO m VALUES (2, 0, 'the key that it gives up');
INSERT INTO m VALUES (6, 0, 'the key that it takes');
-- The tuple that the wait names depends on the way in which the statement runs.
\set SHOW_CONTEXT never
INSERT INTO m VALUES (6, 0, 'the key that it takes') ON CONFLICT (id) DO NOTHING;
\set SHOW_CONTEXT errors
UPDATE m SET v = 'free' WHERE id = 3;
DROP FOREIGN TABLE m;
RESET lock_timeout;
SELECT gid FROM pg_prepared_xacts WHERE database = current_database();
COMMIT PREPARED 'one';
SELECT * FROM show();
SELECT v FROM h WHERE id = 1;

-- Rolled back.
BEGIN;
UPDATE m SET v = 'gone', k = 999 WHERE id = 1;
DELETE FROM m WHERE id = 3;
INSERT INTO m SELECT i, i, 'gone' FROM generate_series(100, 200) i;
DELETE FROM m WHERE id = 150;
UPDATE h SET v = 'gone' WHERE id = 1;
PREPARE TRANSACTION 'two';
ROLLBACK PREPARED 'two';
SELECT * FROM show();
SELECT v FROM h WHERE id = 1;
-- Its rows and keys are free, and change again.
UPDATE m SET v = 'after', k = 11 WHERE id = 1;
INSERT INTO m VALUES (100, 100, 'after');
SELECT * FROM show();

-- Several at a time, ended in another order.
BEGIN; INSERT INTO m VALUES (301, 1, 'a'); PREPARE TRANSACTION 'a';
BEGIN; INSERT INTO m VALUES (302, 2, 'b'); DELETE FROM m WHERE id = 100; PREPARE TRANSACTION 'b';
BEGIN; INSERT INTO m VALUES (303, 3, 'c'); PREPARE TRANSACTION 'c';
COMMIT PREPARED 'c';
ROLLBACK PREPARED 'a';
COMMIT PREPARED 'b';
SELECT * FROM show();

-- Row locks without a change.
BEGIN;
SELECT id FROM m WHERE id = 1 FOR UPDATE;
SELECT id FROM m WHERE id = 4 FOR SHARE;
SELECT id FROM m WHERE id = 4 FOR KEY SHARE;
PREPARE TRANSACTION 'locks';
BEGIN;
SELECT id FROM m WHERE id = 4 FOR SHARE;
INSERT INTO h VALUES (77, 'x');
PREPARE TRANSACTION 'shared';
SET lock_timeout = '50ms';
SELECT id FROM m WHERE id = 1 FOR KEY SHARE;
UPDATE m SET v = 'mine' WHERE id = 4;
CREATE TRIGGER same BEFORE UPDATE ON m FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
UPDATE m SET v = 'mine' WHERE id = 4;
ALTER FOREIGN TABLE m DISABLE TRIGGER same;
SELECT id FROM m WHERE id = 4 FOR SHARE NOWAIT;
ROLLBACK PREPARED 'locks';
SELECT id FROM m WHERE id = 1 FOR UPDATE NOWAIT;
UPDATE m SET v = 'mine' WHERE id = 4;
COMMIT PREPARED 'shared';
UPDATE m SET v = 'mine' WHERE id = 4;
RESET lock_timeout;
SELECT * FROM show();
-- Of a row that was changed, too.
BEGIN;
SELECT id FROM m WHERE id = 1 FOR UPDATE;
UPDATE m SET v = 'locked and changed' WHERE id = 1;
PREPARE TRANSACTION 'changed';
COMMIT PREPARED 'changed';
-- Only read, or nothing left of it.
BEGIN;
SELECT count(*) FROM m;
INSERT INTO h VALUES (78, 'only heap');
PREPARE TRANSACTION 'read';
COMMIT PREPARED 'read';
BEGIN;
SAVEPOINT s;
UPDATE m SET v = 'never';
ROLLBACK TO s;
PREPARE TRANSACTION 'nothing';
COMMIT PREPARED 'nothing';
-- An error after we have logged: the name is taken.
BEGIN; UPDATE m SET v = 'first' WHERE id = 4; PREPARE TRANSACTION 'name';
BEGIN; UPDATE m SET v = 'second' WHERE id = 5; PREPARE TRANSACTION 'name';
COMMIT PREPARED 'name';
UPDATE m SET v = 'third' WHERE id = 5;
SELECT * FROM show();
-- Another error after we have logged.
BEGIN;
UPDATE m SET v = 'deferred' WHERE id = 5;
NOTIFY x;
PREPARE TRANSACTION 'notify';
SELECT * FROM show();

-- More subtransactions than PostgreSQL keeps in shared memory: snapshots taken meanwhile have overflowed.
BEGIN;
DO $$ BEGIN FOR i IN 1001 .. 1080 LOOP BEGIN INSERT INTO m VALUES (i, i, 'sub'); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;
PREPARE TRANSACTION 'overflowed';
SELECT count(*) FROM m WHERE id > 1000;
COMMIT PREPARED 'overflowed';
SELECT count(*) FROM m WHERE id > 1000;
DELETE FROM m WHERE id > 1000;

-- Row locks without a change take no places in the table of locks that everybody needs.
INSERT INTO m SELECT i, i, 'many' FROM generate_series(10001, 15000) i;
BEGIN;
SELECT count(*) FROM (SELECT id FROM m WHERE id > 10000 FOR SHARE) locked;
PREPARE TRANSACTION 'many';
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT count(*) FROM (SELECT id FROM m WHERE id > 10000 FOR UPDATE SKIP LOCKED) locked;
ROLLBACK PREPARED 'many';
BEGIN;
SELECT count(*) FROM (SELECT id FROM m WHERE id > 10000 FOR UPDATE) locked;
UPDATE m SET k = k + 1 WHERE id > 10000;
PREPARE TRANSACTION 'many';
COMMIT PREPARED 'many';
BEGIN;
SELECT count(*) FROM (SELECT id FROM m WHERE id BETWEEN 10001 AND 10300 FOR SHARE) locked;
SELECT count(*) FROM (SELECT id FROM m WHERE id BETWEEN 10001 AND 10300 FOR UPDATE) locked;
PREPARE TRANSACTION 'many';
SELECT count(*) FROM (SELECT id FROM m WHERE id > 10000 FOR SHARE SKIP LOCKED) locked;
ROLLBACK PREPARED 'many';
DELETE FROM m WHERE id > 10000;

-- Dead versions and ended locks go, whoever ended them: one version of each row is left.
CREATE PROCEDURE wait_for_sweeper() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 500 LOOP
    EXIT WHEN (SELECT versions = rows FROM mot.check('prepared.m'));
    COMMIT;
    PERFORM pg_sleep(0.02);
  END LOOP;
END $$;
CALL wait_for_sweeper();
SELECT versions = rows AS all_swept FROM mot.check('m');
SELECT * FROM show();
DROP SCHEMA prepared CASCADE;
