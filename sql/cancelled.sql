-- A transaction that is cancelled, terminated or fails at any step leaves nothing behind: no lock, no state, no entry; and others go on.
-- Every pause point (test builds have them) is tried with every ending; the victim and its neighbours are connections of dblink.
SET client_min_messages = warning;
CREATE EXTENSION dblink;
CREATE FOREIGN TABLE t (id int PRIMARY KEY, k int, v text) SERVER mot;
CREATE INDEX ON t (k);
CREATE TABLE h (n int);
CREATE TABLE outcomes (point text, ending text, reached bool, state text, done bool);

CREATE FUNCTION connect(name text) RETURNS void LANGUAGE sql AS $$
  SELECT dblink_connect(name, format('host=%s port=%s user=%s dbname=%s application_name=mot_%s',
    current_setting('unix_socket_directories'), current_setting('port'), current_user, current_database(), name))
$$;

-- Whether `condition` (SQL) came true before long.
CREATE FUNCTION wait_until(condition text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE is_true bool; deadline timestamptz := clock_timestamp() + interval '20 s';
BEGIN
  LOOP
    -- Or this transaction goes on seeing who was there when it first looked.
    PERFORM pg_stat_clear_snapshot();
    EXECUTE 'SELECT ' || condition INTO is_true;
    IF is_true THEN RETURN true; END IF;
    IF clock_timestamp() > deadline THEN RETURN false; END IF;
    PERFORM pg_sleep(0.002);
  END LOOP;
END $$;

-- Comes to every point of a transaction; all of it happens or nothing does, in t and in h.
CREATE FUNCTION work() RETURNS text LANGUAGE sql AS $$
  SELECT 'SET enable_seqscan = off; BEGIN; INSERT INTO h VALUES (1); INSERT INTO t VALUES (100, 1, ''new''), (101, 2, ''new'');'
    ' UPDATE t SET id = id + 1000, k = 9 WHERE id = 1; DELETE FROM t WHERE id = 2; SELECT count(*) FROM t WHERE k IN (1, 9); SELECT count(*) FROM t;'
    -- By parallel workers.
    ' SET enable_seqscan = on; SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0; SET cpu_operator_cost = 100;'
    ' SELECT count(*) FROM t WHERE length(v) > 1; RESET cpu_operator_cost; SET enable_seqscan = off;'
    ' SELECT id FROM t WHERE id = 3 FOR UPDATE; SAVEPOINT s; UPDATE t SET id = 2000, v = ''savepoint'' WHERE id = 5; ROLLBACK TO s;'
    ' INSERT INTO t VALUES (50, 5, ''again''); UPDATE t SET v = v || ''w'' WHERE id = 4; ' || current_setting('mot_test.ending')
$$;

CREATE PROCEDURE attempt(point text, ending text) LANGUAGE plpgsql AS $$
DECLARE
  pid int; reached bool; state text; done bool;
  is_wait bool := point LIKE 'wait-%' OR point LIKE 'recheck-%';
BEGIN
  DELETE FROM t;
  DELETE FROM h;
  INSERT INTO t SELECT i, i, 'old' FROM generate_series(1, 6) i UNION ALL SELECT 50, 5, 'dead';
  COMMIT;
  -- Keeps the dead row 50, so that the inserter of its key has something to judge.
  PERFORM connect('reader');
  PERFORM dblink_exec('reader', 'BEGIN ISOLATION LEVEL SERIALIZABLE');
  PERFORM * FROM dblink('reader', 'SELECT count(*) FROM t') AS (n bigint);
  DELETE FROM t WHERE id = 50;
  COMMIT;
  PERFORM connect('owner');
  IF is_wait THEN
    PERFORM dblink_exec('owner', 'BEGIN; UPDATE t SET v = ''owned'' WHERE id = 4');
  END IF;
  PERFORM connect('victim');
  SELECT n INTO pid FROM dblink('victim', 'SELECT pg_backend_pid()') AS (n int);
  IF ending = 'fail' THEN
    PERFORM mot.fail_at(point);
  ELSE
    PERFORM mot.pause_at(point);
  END IF;
  PERFORM set_config('mot_test.ending', CASE WHEN point LIKE 'abort-%' THEN 'ROLLBACK' ELSE 'COMMIT' END, false);
  PERFORM dblink_send_query('victim', work());
  IF point IN ('wait-after-owner', 'recheck-before-lock') THEN
    PERFORM wait_until(format('cardinality(pg_blocking_pids(%s)) > 0', pid));
    PERFORM dblink_exec('owner', 'COMMIT');
  END IF;
  reached := wait_until(CASE ending WHEN 'fail' THEN 'dblink_is_busy(''victim'') = 0' ELSE format('mot.paused(%L) > 0', point) END);
  IF ending = 'cancel' THEN
    PERFORM pg_cancel_backend(pid);
  ELSIF ending = 'terminate' THEN
    PERFORM pg_terminate_backend(pid);
  END IF;
  -- Where an error may come, it has come before the point is left.
  IF ending <> 'fail' AND (SELECT may_fail FROM mot.pause_points() p WHERE p.point = attempt.point) THEN
    PERFORM wait_until(format('mot.paused(%L) = 0', point));
  END IF;
  PERFORM mot.resume(point);
  PERFORM wait_until('dblink_is_busy(''victim'') = 0');
  BEGIN
    -- Until there is no result any more, or an error.
    LOOP
      PERFORM * FROM dblink_get_result('victim') AS (x text);
      EXIT WHEN NOT FOUND;
    END LOOP;
    state := 'done';
  EXCEPTION WHEN query_canceled OR OTHERS THEN
    state := CASE WHEN SQLERRM LIKE '%terminat%' THEN 'terminated' WHEN SQLERRM LIKE '%cancel%' THEN 'cancelled'
      WHEN SQLERRM LIKE 'failed at%' THEN 'failed' WHEN SQLSTATE = '42804' THEN 'done' ELSE SQLERRM END;
  END;
  IF ending = 'cancel' THEN
    -- The session is still good, and its transaction block is open and failed.
    PERFORM wait_until('dblink_is_busy(''victim'') = 0');
  END IF;
  PERFORM dblink_disconnect('victim');
  IF NOT wait_until(format('NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)', pid)) THEN
    RAISE EXCEPTION 'the victim does not end';
  END IF;
  PERFORM dblink_disconnect('owner');
  COMMIT;
  SELECT count(*) = 1 INTO done FROM h;
  IF done <> EXISTS (SELECT FROM t WHERE id = 100) OR done <> EXISTS (SELECT FROM t WHERE id = 1001)
     OR done = EXISTS (SELECT FROM t WHERE id = 2) OR done <> EXISTS (SELECT FROM t WHERE id = 50) OR EXISTS (SELECT FROM t WHERE id = 2000) THEN
    RAISE EXCEPTION 'half a transaction at %, %: %', point, ending, (SELECT array_agg(t ORDER BY id) FROM t);
  END IF;
  -- Autovacuum, in any database, has a tuple of pg_class locked for a moment.
  IF NOT wait_until('NOT EXISTS (SELECT FROM pg_locks WHERE locktype IN (''tuple'', ''advisory''))') THEN
    RAISE EXCEPTION 'a lock is left at %, %', point, ending;
  END IF;
  -- Every row can be changed at once, every key be used, and rows and indexes agree.
  SET LOCAL lock_timeout = '5s';
  UPDATE t SET v = v || '.', k = k + 1;
  INSERT INTO t SELECT i, i, 'after' FROM unnest(ARRAY[1, 2, 50, 100, 101, 1001, 2000]) i ON CONFLICT (id) DO UPDATE SET v = 'after';
  COMMIT;
  PERFORM mot.check('t');
  PERFORM dblink_disconnect('reader');
  INSERT INTO outcomes VALUES (point, ending, reached, state, done);
  COMMIT;
END $$;

-- What the rows take now: nothing but what others left.
SELECT mot.row_bytes_exactly() AS row_bytes_before \gset

-- Of the process that reclaims, pause_reclaim.spec; checkpoints and PREPARE have specs of their own.
SELECT format('CALL attempt(%L, %L)', point, ending)
FROM mot.pause_points(), unnest(ARRAY['cancel', 'terminate', 'fail']) ending
WHERE point NOT LIKE 'reclaim-%' AND point NOT LIKE 'unlink-%' AND point NOT LIKE 'checkpoint-%' AND point NOT LIKE 'prepare-%'
  -- Of indexes built beside writers, pause_am_build.spec and pause_am_keys.spec.
  AND point NOT LIKE 'build-%' AND point NOT LIKE 'validate-%' AND point NOT LIKE 'keys-%'
  AND (may_fail OR ending <> 'fail')
ORDER BY point COLLATE "C", ending COLLATE "C"
\gexec
SELECT * FROM outcomes ORDER BY point COLLATE "C", ending COLLATE "C";
SELECT mot.fail_at('commit-before-hints');
SELECT mot.pause_at('no-such-point');
SELECT connect('last');
SELECT dblink_exec('last', 'DELETE FROM t');
SELECT dblink_disconnect('last');
SELECT wait_until('(SELECT entries = 0 AND versions = 0 FROM mot.check(''t''))');
SELECT rows, entries, versions FROM mot.check('t');
-- Nor is there memory that nobody can reach.
SELECT wait_until('mot.row_bytes_exactly() <= ' || :row_bytes_before);
SELECT greatest(mot.row_bytes_exactly() - :row_bytes_before, 0) AS row_bytes_left;
DROP FOREIGN TABLE t;
DROP TABLE h, outcomes;
DROP PROCEDURE attempt;
DROP FUNCTION connect, wait_until, work;
DROP EXTENSION dblink;
