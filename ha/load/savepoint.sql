-- What is rolled back, to a savepoint or as a whole, is rolled back in both.
\set a random(1, 400)
\set id random(1, 3000)
\set d random(1, 100)
BEGIN;
SELECT pg_advisory_xact_lock(:id);
UPDATE twin_heap SET changes = changes + 1 WHERE id = :id;
UPDATE twin_mot SET changes = changes + 1 WHERE id = :id;
SAVEPOINT s;
UPDATE twin_heap SET note = 'rolled back' WHERE id = :id;
UPDATE twin_mot SET note = 'rolled back', k = 99 WHERE id = :id;
ROLLBACK TO s;
UPDATE twin_heap SET note = 'kept' WHERE id = :id;
UPDATE twin_mot SET note = 'kept' WHERE id = :id;
END;
BEGIN;
UPDATE account_heap SET balance = balance - :d WHERE id = :a;
UPDATE account_mot SET balance = balance + 2 * :d WHERE id = :a;
ROLLBACK;
