-- One row of a table USING mot, changed more often in one transaction than ordinals tell apart, beside all who ask for its versions later. Heap says
-- what is right.
-- What a trigger has seen: changes, those that do not follow the one before, the last value.
CREATE FUNCTION am_hot_note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  noted int[] := current_setting('am_hot.' || TG_NAME);
  follows bool := NEW.n = OLD.n + 1 AND OLD.n = noted[3] AND NEW.note = 'n' || NEW.n;
BEGIN
  PERFORM set_config('am_hot.' || TG_NAME, ARRAY[noted[1] + 1, noted[2] + (NOT follows)::int, NEW.n]::text, false);
  RETURN NULL;
END $$;
SET am_hot.at_once = '{0,0,0}';
SET am_hot.at_end = '{0,0,0}';
CREATE PROCEDURE am_hot_make(name text, access_method text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, n int, note text, parent int) USING %I', name, access_method);
  EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, n int) USING %I', name || '_parent', access_method);
  EXECUTE format('INSERT INTO %I VALUES (1, 0), (2, 0)', name || '_parent');
  EXECUTE format('INSERT INTO %I VALUES (1, 0, ''n0'', 1), (2, 0, ''n0'', 1)', name);
  EXECUTE format('ALTER TABLE %I ADD FOREIGN KEY (parent) REFERENCES %I DEFERRABLE INITIALLY DEFERRED', name, name || '_parent');
END $$;
CALL am_hot_make('hot_heap', 'heap');
CALL am_hot_make('hot_mot', 'mot');
CREATE PROCEDURE am_hot_change(name text, times int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..times LOOP
    EXECUTE format('UPDATE %I SET n = n + 1, note = ''n'' || n + 1, parent = 3 - parent WHERE id = 1', name);
  END LOOP;
END $$;
-- Immediate and deferred triggers see each change with the rows that it had.
CREATE PROCEDURE am_hot_triggers(name text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TRIGGER at_once AFTER UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION am_hot_note()', name);
  EXECUTE format('CREATE CONSTRAINT TRIGGER at_end AFTER UPDATE ON %I DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION am_hot_note()', name);
END $$;
CALL am_hot_change('hot_heap', 9000);
CALL am_hot_change('hot_mot', 9000);
SELECT h.n, h.note, h = m AS same FROM hot_heap h JOIN hot_mot m USING (id) ORDER BY id;
UPDATE hot_heap SET n = 0, note = 'n0';
UPDATE hot_mot SET n = 0, note = 'n0';
CALL am_hot_triggers('hot_mot');
BEGIN;
CALL am_hot_change('hot_mot', 9000);
SELECT current_setting('am_hot.at_once') AS at_once, current_setting('am_hot.at_end') AS at_end;
-- Some of the events early, and states of a savepoint that goes.
SET CONSTRAINTS at_end IMMEDIATE;
SELECT current_setting('am_hot.at_once') AS at_once, current_setting('am_hot.at_end') AS at_end;
SET CONSTRAINTS at_end DEFERRED;
CALL am_hot_change('hot_mot', 500);
SAVEPOINT a;
CALL am_hot_change('hot_mot', 2000);
SELECT n FROM hot_mot WHERE id = 1;
ROLLBACK TO a;
SELECT n FROM hot_mot WHERE id = 1;
CALL am_hot_change('hot_mot', 2000);
COMMIT;
SELECT current_setting('am_hot.at_once') AS at_once, current_setting('am_hot.at_end') AS at_end;
SELECT * FROM hot_mot WHERE id = 1;
-- A foreign key that the last state breaks is found by the event of that state alone.
BEGIN;
CALL am_hot_change('hot_mot', 2000);
UPDATE hot_mot SET n = n + 1, note = 'n' || n + 1, parent = 7 WHERE id = 1;
CALL am_hot_change('hot_mot', 1);
COMMIT;
-- Cursors see the states of their moment; WHERE CURRENT OF finds the row in the statement's.
DROP TRIGGER at_once ON hot_mot;
DROP TRIGGER at_end ON hot_mot;
BEGIN;
CALL am_hot_change('hot_mot', 1500);
DECLARE early SCROLL CURSOR FOR SELECT n, ctid <> '(0,1)' AS has_ctid FROM hot_mot WHERE id = 1;
FETCH early;
CALL am_hot_change('hot_mot', 1500);
DECLARE late CURSOR FOR SELECT n FROM hot_mot WHERE id = 1 FOR UPDATE;
FETCH late;
UPDATE hot_mot SET n = n + 1 WHERE CURRENT OF late RETURNING n;
FETCH FIRST early;
-- An id of the own transaction, given back; and of another one.
SELECT ctid AS own FROM hot_mot WHERE id = 1 \gset
SELECT n FROM hot_mot WHERE ctid = :'own';
UPDATE hot_mot SET n = n + 1 WHERE ctid = :'own' RETURNING n, ctid <> :'own' AS is_another;
SELECT n FROM hot_mot WHERE ctid = :'own';
SELECT ctid AS own FROM hot_mot WHERE id = 1 \gset
-- A range has the same rows in every plan.
SET enable_seqscan = off;
SELECT n FROM hot_mot WHERE ctid >= '(0,1)' AND ctid < '(1,0)';
SELECT n FROM hot_mot WHERE ctid >= '(0,1)' ORDER BY n;
SELECT n FROM hot_mot WHERE ctid > '(0,1)' AND ctid < :'own';
SELECT n FROM hot_mot WHERE ctid >= :'own' AND ctid <= :'own';
RESET enable_seqscan;
SET enable_tidscan = off;
SELECT n FROM hot_mot WHERE ctid >= '(0,1)' AND ctid < '(1,0)';
SELECT n FROM hot_mot WHERE ctid >= '(0,1)' ORDER BY n;
SELECT n FROM hot_mot WHERE ctid > '(0,1)' AND ctid < :'own';
SELECT n FROM hot_mot WHERE ctid >= :'own' AND ctid <= :'own';
SELECT n FROM hot_mot WHERE ctid = :'own';
RESET enable_tidscan;
COMMIT;
SELECT n FROM hot_mot WHERE ctid = :'own';
BEGIN;
CALL am_hot_change('hot_mot', 3000);
SELECT n FROM hot_mot WHERE ctid = :'own';
UPDATE hot_mot SET n = 0 WHERE ctid = :'own' RETURNING n;
DELETE FROM hot_mot WHERE id = 1 RETURNING n;
INSERT INTO hot_mot VALUES (1, 0, 'n0', 1);
CALL am_hot_change('hot_mot', 3000);
INSERT INTO hot_mot VALUES (1, 5, 'n5', 1) ON CONFLICT (id) DO UPDATE SET n = hot_mot.n + 1 RETURNING n;
MERGE INTO hot_mot t USING (VALUES (1)) v (id) ON t.id = v.id WHEN MATCHED THEN UPDATE SET n = t.n + 1;
SELECT n FROM hot_mot WHERE id = 1 FOR UPDATE;
ROLLBACK;
SELECT rows FROM mot.check('hot_mot');
-- Each change under a savepoint of its own, every third one taken back.
CREATE PROCEDURE am_hot_savepoints(name text, times int) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..times LOOP
    BEGIN
      EXECUTE format('UPDATE %I SET n = n + 1, note = ''n'' || n + 1 WHERE id = 2', name);
      IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END LOOP;
END $$;
SET am_hot.at_once = '{0,0,0}';
SET am_hot.at_end = '{0,0,0}';
CALL am_hot_triggers('hot_mot');
CALL am_hot_savepoints('hot_mot', 4000);
SELECT current_setting('am_hot.at_once') AS at_once, current_setting('am_hot.at_end') AS at_end;
SELECT n FROM hot_mot WHERE id = 2;
DROP TABLE hot_mot, hot_heap, hot_mot_parent, hot_heap_parent;
DROP FUNCTION am_hot_note;
DROP PROCEDURE am_hot_make, am_hot_change, am_hot_triggers, am_hot_savepoints;
