-- What a transaction with the same local id told of its snapshot 2^32 transactions ago is not believed: an open cursor keeps what it sees.
SET client_min_messages = warning;
CREATE EXTENSION dblink;
CREATE SCHEMA told_stale;
SET search_path = told_stale, public;
CREATE FOREIGN TABLE t (id int PRIMARY KEY, v int) SERVER mot;
INSERT INTO t SELECT i, i FROM generate_series(1, 2000) i;
SELECT dblink_connect('other', format('host=%s port=%s user=%s dbname=%s', current_setting('unix_socket_directories'),
  current_setting('port'), current_user, current_database()));
BEGIN;
DECLARE c CURSOR FOR SELECT id, v FROM t ORDER BY id;
FETCH 1 FROM c;
SELECT mot.plant_told_snapshot();
SELECT keeps FROM mot.stat_horizon WHERE pid = pg_backend_pid();
SELECT dblink_exec('other', 'UPDATE told_stale.t SET v = -v');
SELECT dblink_exec('other', 'UPDATE told_stale.t SET v = v - 10000');
-- Rounds of the reclaimer.
SELECT pg_sleep(1);
MOVE FORWARD 998 IN c;
FETCH 2 FROM c;
MOVE FORWARD ALL IN c;
COMMIT;
SELECT count(*), sum(v) FROM t;
-- The only snapshot of a transaction is believed as ever.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM t;
SELECT keeps FROM mot.stat_horizon WHERE pid = pg_backend_pid();
COMMIT;
SELECT dblink_disconnect('other');
DROP FOREIGN TABLE t;
DROP SCHEMA told_stale;
RESET search_path;
DROP EXTENSION dblink;
