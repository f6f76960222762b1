-- PRIMARY KEY and UNIQUE added, used, dropped; NOT NULL and CHECK kept.
-- NOT NULL as a constraint: am_postgres_18.
CREATE FOREIGN TABLE co (a int, b text, c int) SERVER mot;
INSERT INTO co SELECT i, 'b' || i, i % 3 FROM generate_series(1, 10) i;
ALTER TABLE co ADD PRIMARY KEY (a);
ALTER FOREIGN TABLE co ADD CONSTRAINT co_b UNIQUE (b);
ALTER TABLE co ADD UNIQUE (a, c), ADD CONSTRAINT co_check CHECK (a < 1000);
\d co
SELECT conname, contype, pg_get_constraintdef(oid), conindid::regclass FROM pg_constraint
WHERE conrelid = 'co'::regclass AND contype <> 'n' ORDER BY 1;
\set VERBOSITY sqlstate
INSERT INTO co VALUES (1, 'new', 0);
\set VERBOSITY default
INSERT INTO co VALUES (1, 'new', 0);
INSERT INTO co VALUES (11, 'b3', 0);
INSERT INTO co VALUES (NULL, 'x', 0);
INSERT INTO co VALUES (1000, 'x', 0);
UPDATE co SET a = 2 WHERE a = 1;
UPDATE co SET b = 'b2' WHERE a = 1;
UPDATE co SET a = NULL WHERE a = 1;
UPDATE co SET a = a + 100;
UPDATE co SET a = a - 100;
SELECT count(*), min(a), max(a) FROM co;
-- Violated by what is there.
ALTER TABLE co ADD PRIMARY KEY (b);
ALTER TABLE co ADD UNIQUE (c);
CREATE FOREIGN TABLE co2 (a int, b int) SERVER mot;
INSERT INTO co2 VALUES (1, 1), (1, 2), (NULL, 3);
ALTER TABLE co2 ADD PRIMARY KEY (a);
ALTER TABLE co2 ADD UNIQUE (a);
DELETE FROM co2 WHERE b = 2;
ALTER TABLE co2 ADD UNIQUE (a);
ALTER TABLE co2 ADD PRIMARY KEY (a);
DELETE FROM co2 WHERE a IS NULL;
ALTER TABLE co2 ADD PRIMARY KEY (a);
ALTER TABLE co2 ADD CHECK (b > 1);
ALTER TABLE co2 ADD CONSTRAINT co2_later CHECK (b > 1) NOT VALID;
INSERT INTO co2 VALUES (2, 0);
ALTER TABLE co2 VALIDATE CONSTRAINT co2_later;
UPDATE co2 SET b = 2;
ALTER TABLE co2 VALIDATE CONSTRAINT co2_later;
ALTER TABLE co2 ADD CHECK (b < 10);
\d co2
-- USING INDEX.
CREATE UNIQUE INDEX co2_idx ON co2 (b);
CREATE UNIQUE INDEX co2_desc ON co2 (b DESC);
CREATE INDEX co2_plain ON co2 (b);
ALTER TABLE co2 ADD CONSTRAINT co2_b_unique UNIQUE USING INDEX co2_idx;
ALTER TABLE co2 ADD UNIQUE USING INDEX co2_desc;
ALTER TABLE co2 ADD UNIQUE USING INDEX co2_plain;
ALTER TABLE co2 ADD UNIQUE USING INDEX co2_b_unique;
ALTER TABLE co2 ADD UNIQUE USING INDEX co_b;
ALTER TABLE co2 ADD UNIQUE USING INDEX nope;
ALTER TABLE co2 DROP CONSTRAINT co2_pkey;
CREATE UNIQUE INDEX co2_pk ON co2 (a);
ALTER TABLE co2 ALTER a DROP NOT NULL;
ALTER TABLE co2 ADD PRIMARY KEY USING INDEX co2_pk;
\d co2
-- Dropping.
DROP INDEX co_b;
ALTER TABLE co DROP CONSTRAINT co_b, DROP CONSTRAINT IF EXISTS nope;
INSERT INTO co VALUES (11, 'b3', 0);
SELECT a FROM co WHERE b = 'b3' ORDER BY a;
ALTER TABLE co RENAME CONSTRAINT co_pkey TO co_renamed;
INSERT INTO co VALUES (11, 'b3', 0);
ALTER TABLE co DROP CONSTRAINT co_renamed;
INSERT INTO co VALUES (11, 'b3', 1);
SELECT rows FROM mot.check('co');
SELECT rows FROM mot.check('co2');
-- ON CONFLICT.
CREATE FOREIGN TABLE co3 (k int PRIMARY KEY, v int) SERVER mot;
INSERT INTO co3 VALUES (1, 1), (2, 2);
INSERT INTO co3 VALUES (1, 5), (3, 3) ON CONFLICT DO NOTHING;
SELECT * FROM co3 ORDER BY k;
-- A failed statement leaves nothing; a subtransaction's failure only its own.
BEGIN;
INSERT INTO co3 VALUES (10, 1);
SAVEPOINT s;
INSERT INTO co3 VALUES (11, 1), (10, 2);
ROLLBACK TO s;
INSERT INTO co3 VALUES (12, 1);
COMMIT;
SELECT * FROM co3 ORDER BY k;
SELECT rows FROM mot.check('co3');
-- A domain's constraints are kept, also when they come later.
CREATE DOMAIN co_positive AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE co4 (a co_positive PRIMARY KEY, b text) SERVER mot;
INSERT INTO co4 VALUES (1, 'x'), (50, 'y');
INSERT INTO co4 VALUES (-1, 'x');
ALTER DOMAIN co_positive ADD CONSTRAINT co_small CHECK (VALUE < 10);
DELETE FROM co4 WHERE a = 50;
ALTER DOMAIN co_positive ADD CONSTRAINT co_small CHECK (VALUE < 10);
INSERT INTO co4 VALUES (50, 'x');
DROP FOREIGN TABLE co, co2, co3, co4;
DROP DOMAIN co_positive;
-- An UPDATE of several rows under a key that is not deferrable passes or fails as its rows would one after the other, in the order in which the statement meets
-- them: never for a state that the same statement has replaced already. A heap table takes the rows one by one here.
CREATE TABLE one_by_one (r int, id int, k int);
CREATE UNIQUE INDEX ON one_by_one (k, id);
CREATE FOREIGN TABLE at_once (r int, id int PRIMARY KEY, k int) SERVER mot;
INSERT INTO at_once SELECT i, i, i % 3 FROM generate_series(1, 12) i;
CREATE UNIQUE INDEX at_once_k_id ON at_once (k, id);
ALTER FOREIGN TABLE at_once DROP CONSTRAINT at_once_pkey;
ALTER FOREIGN TABLE at_once ALTER id DROP NOT NULL;
CREATE FUNCTION compare(new_id text, new_k text, filter text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE row_number int; expected text := 'done'; got text := 'done';
BEGIN
  DELETE FROM one_by_one;
  INSERT INTO one_by_one SELECT * FROM at_once;
  BEGIN
    FOR row_number IN EXECUTE format('SELECT r FROM at_once WHERE %s', filter) LOOP
      EXECUTE format('UPDATE one_by_one SET id = %s, k = %s WHERE r = $1', new_id, new_k) USING row_number;
    END LOOP;
  EXCEPTION WHEN unique_violation THEN
    expected := 'duplicate';
  END;
  BEGIN
    EXECUTE format('UPDATE at_once SET id = %s, k = %s WHERE %s', new_id, new_k, filter);
  EXCEPTION WHEN unique_violation THEN
    got := 'duplicate';
  END;
  IF got <> expected OR EXISTS (SELECT * FROM one_by_one EXCEPT SELECT * FROM at_once) THEN
    RETURN format('%s, expected %s', got, expected);
  END IF;
  RETURN got;
END $$;
CREATE TABLE compared (new_id text, new_k text, filter text, outcome text);
DO $$
DECLARE new_id text; new_k text; filter text; round int;
BEGIN
  FOR round IN 1..3 LOOP
    FOREACH filter IN ARRAY ARRAY['true', 'k = 1', 'k >= 1', 'id > 3', 'id IN (1, 2, 3, 5)', 'k IS NOT NULL AND r % 2 = 0'] LOOP
      FOREACH new_k IN ARRAY ARRAY['k', 'k + 1', '1 - k', 'k - 1', 'id % 3'] LOOP
        FOREACH new_id IN ARRAY ARRAY['id', 'id + 1', 'id - 1', '-id', '10 - id', 'id # 1', 'k', 'r'] LOOP
          INSERT INTO compared VALUES (new_id, new_k, filter, compare(new_id, new_k, filter));
        END LOOP;
      END LOOP;
    END LOOP;
    -- Keys that dead rows have had, and some without.
    DELETE FROM at_once WHERE r % 4 = round;
    INSERT INTO at_once SELECT 100 * round + i, 100 * round + i, NULLIF(i, 2) FROM generate_series(1, 4) i;
  END LOOP;
END $$;
SELECT outcome LIKE '%expected%' AS differs, count(*) > 100 AS many, count(DISTINCT outcome) AS outcomes FROM compared GROUP BY 1;
SELECT * FROM compared WHERE outcome LIKE '%expected%' LIMIT 5;
SELECT rows FROM mot.check('at_once');
DROP TABLE compared, one_by_one;
DROP FUNCTION compare;
DROP FOREIGN TABLE at_once;
