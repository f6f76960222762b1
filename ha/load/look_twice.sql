-- One snapshot for several statements, by sequential and by index scans.
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY;
SELECT look();
SET LOCAL enable_seqscan = off;
SELECT 1 / (sum((h.note IS NOT DISTINCT FROM m.note AND h.k = m.k)::int) = count(*))::int FROM twin_heap h JOIN twin_mot m USING (id) WHERE h.k < 10;
SELECT look();
END;
