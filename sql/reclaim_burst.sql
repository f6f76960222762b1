-- The reclaimer naps long where nothing happens. A session that leaves rows behind wakes it: here
-- the nap would be 25 seconds, and was begun a moment ago.
SET client_min_messages = warning;
CREATE SCHEMA reclaim_burst;
SET search_path = reclaim_burst, pg_catalog;
CREATE FOREIGN TABLE rows (id int PRIMARY KEY, n int) SERVER mot;
INSERT INTO rows SELECT g, 0 FROM generate_series(1, 1000) g;
ALTER SYSTEM SET mot.reclaim_naptime = '1s';
-- A worker that looks at what earlier tests have left may hold dead versions back for longer than
-- that.
ALTER SYSTEM SET autovacuum = off;
SELECT pg_reload_conf();
CREATE PROCEDURE wait_for_workers() LANGUAGE plpgsql AS $$
BEGIN
  WHILE EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'autovacuum worker') LOOP
    PERFORM pg_sleep(0.1);
    COMMIT;
  END LOOP;
END $$;
CALL wait_for_workers();
SELECT pg_sleep(3);
UPDATE rows SET n = n + 1;
-- Well before that nap's end.
CREATE PROCEDURE wait() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..180 LOOP
    EXIT WHEN (SELECT versions_stale FROM mot.stat_tables WHERE relname = 'rows') = 0;
    PERFORM pg_sleep(0.1);
    COMMIT;
  END LOOP;
END $$;
CALL wait();
SELECT versions_stale FROM mot.stat_tables WHERE relname = 'rows';
-- Left behind when the round is over and nobody can see the nap yet.
DO $$ BEGIN PERFORM mot.pause_at('reclaim-before-nap'); PERFORM mot.wait_until_paused('reclaim-before-nap'); END $$;
UPDATE rows SET n = n + 1;
DO $$ BEGIN PERFORM mot.resume('reclaim-before-nap'); END $$;
CALL wait();
SELECT versions_stale FROM mot.stat_tables WHERE relname = 'rows';
ALTER SYSTEM RESET mot.reclaim_naptime;
ALTER SYSTEM RESET autovacuum;
SELECT pg_reload_conf();
RESET search_path;
DROP SCHEMA reclaim_burst CASCADE;
