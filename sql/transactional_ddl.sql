-- Definitions are transactional: with rows, with savepoints, with errors.
BEGIN;
CREATE FOREIGN TABLE td (a int PRIMARY KEY, b int) SERVER mot;
INSERT INTO td VALUES (1, 1);
ROLLBACK;
SELECT to_regclass('td');
CREATE FOREIGN TABLE td (a int PRIMARY KEY, b int) SERVER mot;
INSERT INTO td SELECT i, i % 10 FROM generate_series(1, 50) i;
-- An index rolled back
BEGIN;
CREATE INDEX td_b ON td (b);
INSERT INTO td VALUES (100, 5);
SELECT count(*) FROM td WHERE b = 5;
ROLLBACK;
SELECT count(*) FROM td WHERE b = 5;
SELECT count(*) FROM pg_index WHERE indrelid = 'td'::regclass;
-- A dropped index comes back with what was written meanwhile
BEGIN;
ALTER TABLE td DROP CONSTRAINT td_pkey;
INSERT INTO td VALUES (1, 77);
ROLLBACK;
INSERT INTO td VALUES (1, 77);
BEGIN;
SAVEPOINT s;
ALTER TABLE td DROP CONSTRAINT td_pkey;
DELETE FROM td WHERE a = 2;
ROLLBACK TO s;
INSERT INTO td VALUES (51, 1);
COMMIT;
SELECT count(*) FROM td WHERE a IN (2, 51);
SELECT rows FROM mot.check('td');
-- A dropped index refuses no key, and minds those again that it has if the drop is taken back.
CREATE FOREIGN TABLE td_long (a int PRIMARY KEY, b text) SERVER mot;
CREATE UNIQUE INDEX td_long_b ON td_long (b);
INSERT INTO td_long VALUES (1, 'short');
BEGIN;
SAVEPOINT s;
DROP INDEX td_long_b;
INSERT INTO td_long VALUES (2, repeat('x', 20000)), (3, repeat('x', 20000)), (4, 'short');
UPDATE td_long SET b = repeat('y', 20000) WHERE a = 1;
UPDATE td_long SET b = b || 'z' WHERE a IN (1, 4);
SELECT a, length(b) FROM td_long ORDER BY a;
ROLLBACK TO s;
INSERT INTO td_long VALUES (4, 'short');
ROLLBACK;
SELECT a, b FROM td_long WHERE b = 'short';
BEGIN ISOLATION LEVEL SERIALIZABLE;
DROP INDEX td_long_b;
INSERT INTO td_long VALUES (2, repeat('x', 20000));
UPDATE td_long SET b = repeat('y', 20000) WHERE a = 1;
COMMIT;
SELECT a, length(b) FROM td_long ORDER BY a;
CREATE INDEX td_long_b ON td_long (b);
SELECT rows FROM mot.check('td_long');
DROP FOREIGN TABLE td_long;
-- Savepoints around each kind
BEGIN;
CREATE FOREIGN TABLE td2 (a int PRIMARY KEY) SERVER mot;
SAVEPOINT a;
INSERT INTO td2 VALUES (1);
CREATE INDEX td2_a ON td2 (a DESC);
SAVEPOINT b;
DROP INDEX td2_a;
INSERT INTO td2 VALUES (2);
RELEASE b;
ROLLBACK TO a;
INSERT INTO td2 VALUES (3);
SAVEPOINT c;
DROP FOREIGN TABLE td2;
ROLLBACK TO c;
ALTER TABLE td2 ADD COLUMN b int DEFAULT 9 UNIQUE;
COMMIT;
SELECT * FROM td2;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'td2'::regclass ORDER BY 1;
SELECT rows FROM mot.check('td2');
-- A failing statement in the middle
BEGIN;
CREATE FOREIGN TABLE td3 (a int) SERVER mot;
INSERT INTO td3 VALUES (1), (1);
SAVEPOINT s;
ALTER TABLE td3 ADD PRIMARY KEY (a);
ROLLBACK TO s;
DELETE FROM td3 WHERE ctid IN (SELECT max(ctid) FROM td3);
ALTER TABLE td3 ADD PRIMARY KEY (a);
COMMIT;
SELECT * FROM td3;
INSERT INTO td3 VALUES (1);
SELECT rows FROM mot.check('td3');
-- Many in one multi-statement string, and in PL/pgSQL with handlers
DO $$
BEGIN
  FOR i IN 1..20 LOOP
    BEGIN
      EXECUTE format('CREATE FOREIGN TABLE td_loop_%s (a int PRIMARY KEY, b int) SERVER mot', i);
      EXECUTE format('INSERT INTO td_loop_%s SELECT g, g %% 5 FROM generate_series(1, 20) g', i);
      IF i % 3 = 0 THEN
        EXECUTE format('CREATE UNIQUE INDEX ON td_loop_%s (b)', i);
      ELSIF i % 3 = 1 THEN
        EXECUTE format('CREATE INDEX ON td_loop_%s (b)', i);
      END IF;
    EXCEPTION WHEN unique_violation THEN
      NULL;
    END;
  END LOOP;
END $$;
SELECT count(*) FROM pg_class WHERE relname LIKE 'td\_loop\_%' AND relkind = 'r';
SELECT sum(rows) FROM pg_class c, mot.check(c.oid::regclass) WHERE c.relname LIKE 'td\_loop\_%' AND relkind = 'r';
DO $$
DECLARE t text;
BEGIN
  FOR t IN SELECT relname FROM pg_class WHERE relname LIKE 'td\_loop\_%' AND relkind = 'r' LOOP
    EXECUTE format('DROP TABLE %I', t);
  END LOOP;
END $$;
-- A procedure that commits between definitions
CREATE PROCEDURE td_steps() LANGUAGE plpgsql AS $$
BEGIN
  CREATE FOREIGN TABLE td4 (a int PRIMARY KEY) SERVER mot;
  COMMIT;
  INSERT INTO td4 VALUES (1);
  COMMIT;
  CREATE INDEX ON td4 (a DESC);
  ROLLBACK;
  INSERT INTO td4 VALUES (2);
END $$;
CALL td_steps();
CALL td_steps();
SELECT count(*) FROM td4;
SELECT count(*) FROM pg_index WHERE indrelid = 'td4'::regclass;
SELECT rows FROM mot.check('td4');
-- Prepared, by the old spelling, too: am_prepared.sql.
BEGIN;
CREATE FOREIGN TABLE td5 (a int PRIMARY KEY) SERVER mot;
PREPARE TRANSACTION 'td';
COMMIT PREPARED 'td';
DROP FOREIGN TABLE td5;
DROP PROCEDURE td_steps;
DROP FOREIGN TABLE td, td2, td3, td4;
