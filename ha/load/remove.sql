-- Rows leave both, come back in the same transaction under the same key, and half of them leave again.
\set id random(1, 3000)
BEGIN;
SELECT pg_advisory_xact_lock(:id);
DELETE FROM twin_heap WHERE id = :id;
DELETE FROM twin_mot WHERE id = :id;
INSERT INTO twin_heap VALUES (:id, 0, 0, NULL);
INSERT INTO twin_mot VALUES (:id, 0, 0, NULL);
DELETE FROM twin_heap WHERE id = :id AND id % 2 = 0;
DELETE FROM twin_mot WHERE id = :id AND id % 2 = 0;
END;
