-- Rows of a table that only grows come in the order in which they were made, as on heap tables.
-- Rollbacks do not change that. Clients without ORDER BY, and test suites that roll back, see it.
CREATE TABLE made (id int PRIMARY KEY, v text) USING mot;
BEGIN;
INSERT INTO made SELECT i, 'x' FROM generate_series(1, 6) i;
ROLLBACK;
BEGIN;
INSERT INTO made SELECT i, 'x' FROM generate_series(1, 6) i;
SELECT array_agg(id) FROM made;
ROLLBACK;
-- To a savepoint, and in blocks that fail.
BEGIN;
INSERT INTO made SELECT i, 'x' FROM generate_series(1, 3) i;
SAVEPOINT s;
INSERT INTO made SELECT i, 'x' FROM generate_series(4, 40) i;
ROLLBACK TO s;
INSERT INTO made SELECT i, 'x' FROM generate_series(4, 9) i;
DO $$
BEGIN
  FOR i IN 10..12 LOOP
    BEGIN
      INSERT INTO made VALUES (100 + i, 'gone');
      INSERT INTO made VALUES (1, 'taken');
    EXCEPTION WHEN unique_violation THEN
      INSERT INTO made VALUES (i, 'x');
    END;
  END LOOP;
END $$;
SELECT array_agg(id) FROM made;
COMMIT;
-- More than a batch of places.
BEGIN;
INSERT INTO made SELECT i, 'x' FROM generate_series(1001, 6000) i;
ROLLBACK;
INSERT INTO made SELECT i, 'x' FROM generate_series(1001, 6000) i;
SELECT count(*) FILTER (WHERE id < before) AS out_of_order FROM (SELECT id, lag(id) OVER () AS before FROM made) m;
SELECT rows FROM mot.check('made');
DROP TABLE made;
