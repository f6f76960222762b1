-- The same rows in both: inserted, or changed in their note and their indexed column. The lock keeps the two statements of one id
-- together: each has a snapshot of its own.
\set id random(1, 3000)
\set k random(1, 50)
\set length random(0, 10)
BEGIN;
SELECT pg_advisory_xact_lock(:id);
INSERT INTO twin_heap AS t VALUES (:id, :k, 1, repeat('note ' || :k::int, 1 << :length))
  ON CONFLICT (id) DO UPDATE SET k = excluded.k, changes = t.changes + 1, note = excluded.note;
INSERT INTO twin_mot AS t VALUES (:id, :k, 1, repeat('note ' || :k::int, 1 << :length))
  ON CONFLICT (id) DO UPDATE SET k = excluded.k, changes = t.changes + 1, note = excluded.note;
END;
