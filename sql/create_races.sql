-- Definitions that go past the usual way: beside other sessions, below other tables, under other names. (What two sessions do to each other, for the
-- most part: isolation/specs/create_races, publications.)

-- A copied database: an index made while another session makes the table's storage.
SET client_min_messages = warning;
CREATE EXTENSION dblink;
CREATE DATABASE cr_template TEMPLATE template0;
CREATE FUNCTION cr_connect(name text, database text) RETURNS text LANGUAGE sql AS $$
  SELECT dblink_connect(name, format('host=%s port=%s user=%s dbname=%s application_name=%s',
    current_setting('unix_socket_directories'), current_setting('port'), current_user, database, name))
$$;
SELECT cr_connect('cr_a', 'cr_template');
SELECT dblink_exec('cr_a', 'CREATE EXTENSION mot');
SELECT dblink_exec('cr_a', 'CREATE FOREIGN TABLE t (id int, k int) SERVER mot');
SELECT dblink_exec('cr_a', 'CREATE FOREIGN TABLE n (id int, k int) SERVER mot');
SELECT dblink_disconnect('cr_a');
CREATE DATABASE cr_copy TEMPLATE cr_template;
SELECT cr_connect('cr_a', 'cr_copy');
SELECT cr_connect('cr_b', 'cr_copy');
SELECT dblink_exec('cr_a', 'BEGIN');
SELECT * FROM dblink('cr_a', 'SELECT count(*) FROM t') AS a(rows bigint);
SELECT dblink_send_query('cr_b', 'CREATE UNIQUE INDEX u ON t (k)');
DO $$
BEGIN
  FOR attempt IN 1 .. 10000 LOOP
    PERFORM FROM pg_locks l JOIN pg_stat_activity a USING (pid)
      WHERE a.application_name = 'cr_b' AND NOT l.granted AND l.locktype = 'object';
    IF FOUND THEN RETURN; END IF;
    PERFORM pg_sleep(0.002), pg_stat_clear_snapshot();
  END LOOP;
  RAISE 'the second session does not wait';
END $$;
SELECT dblink_exec('cr_a', 'COMMIT');
SELECT * FROM dblink_get_result('cr_b') AS b(status text);
SELECT * FROM dblink_get_result('cr_b') AS b(status text);
SELECT dblink_exec('cr_b', 'INSERT INTO t VALUES (1, 1)');
SELECT dblink_exec('cr_b', 'INSERT INTO t VALUES (2, 1)');
SELECT * FROM dblink('cr_b', 'SELECT rows, entries FROM mot.check(''t'')') AS b(rows bigint, entries bigint);
-- Alone: storage and index at once.
SELECT dblink_exec('cr_b', 'CREATE UNIQUE INDEX n_k ON n (k)');
SELECT dblink_exec('cr_b', 'INSERT INTO n VALUES (1, 1)');
SELECT dblink_exec('cr_b', 'INSERT INTO n VALUES (2, 1)');
SELECT * FROM dblink('cr_b', 'SELECT rows, entries FROM mot.check(''n'')') AS b(rows bigint, entries bigint);
SELECT dblink_disconnect('cr_a'), dblink_disconnect('cr_b');
DROP DATABASE cr_copy;
DROP DATABASE cr_template;
DROP FUNCTION cr_connect;
DROP EXTENSION dblink;
