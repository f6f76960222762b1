-- Money moves between an ordinary table and a memory-optimized one.
\set a random(1, 400)
\set b random(1, 400)
\set d random(-100, 100)
BEGIN;
UPDATE account_heap SET balance = balance - :d WHERE id = :a;
UPDATE account_mot SET balance = balance + :d WHERE id = :b;
END;
