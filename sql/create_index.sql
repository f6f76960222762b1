-- CREATE INDEX on empty and filled tables, as on a heap table beside it.
CREATE FOREIGN TABLE ci (a int, b text, c numeric, d timestamptz) SERVER mot;
CREATE TABLE ci_heap (a int, b text, c numeric, d timestamptz);
CREATE INDEX ON ci (a);
CREATE INDEX ON ci (a, b DESC);
CREATE INDEX ON ci (a, a);
CREATE INDEX ci_named ON ci USING btree (b DESC NULLS LAST, c NULLS FIRST);
CREATE INDEX ci_named2 ON ci USING mot ((c), d);
CREATE UNIQUE INDEX CONCURRENTLY ci_unique ON ci (d);
CREATE INDEX IF NOT EXISTS ci_named ON ci (a);
CREATE INDEX ci_named ON ci (a);
CREATE INDEX ON ci_heap (a);
CREATE INDEX ON ci_heap (a, b DESC);
CREATE INDEX ON ci_heap (a, a);
SELECT replace(indexrelid::regclass::text, 'ci_heap', 'ci') FROM pg_index WHERE indrelid = 'ci_heap'::regclass ORDER BY 1;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'ci'::regclass ORDER BY 1;
BEGIN;
CREATE INDEX CONCURRENTLY ON ci (b);
ROLLBACK;
-- The filled table: same answers in the same order.
INSERT INTO ci_heap SELECT i % 97, md5((i % 300)::text), i % 7, now() + i * interval '1 second' FROM generate_series(1, 2000) i;
INSERT INTO ci_heap SELECT NULL, NULL, NULL, NULL FROM generate_series(1, 5);
INSERT INTO ci SELECT * FROM ci_heap;
CREATE INDEX ci_late ON ci (c DESC, a);
SET enable_sort = off;
SELECT (SELECT array_agg((a, b)) FROM (SELECT a, b COLLATE "C" FROM ci ORDER BY a, b DESC) s)
     = (SELECT array_agg((a, b)) FROM (SELECT a, b COLLATE "C" FROM ci_heap ORDER BY a, b COLLATE "C" DESC) s) AS same;
SELECT (SELECT array_agg((c, a)) FROM (SELECT c, a FROM ci ORDER BY c DESC, a) s)
     = (SELECT array_agg((c, a)) FROM (SELECT c, a FROM ci_heap ORDER BY c DESC, a) s) AS same;
RESET enable_sort;
SELECT count(*) FROM ci WHERE a = 5;
SELECT count(*) FROM ci WHERE c = 3 AND a < 10;
SELECT rows FROM mot.check('ci');
-- Duplicates in a filled table: core's words.
CREATE UNIQUE INDEX ci_dup ON ci (a);
CREATE UNIQUE INDEX ci_dup ON ci_heap (a, b, c, d);
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX ci_dup ON ci (a);
\set VERBOSITY default
CREATE UNIQUE INDEX ci_dup ON ci (a, c);
DELETE FROM ci WHERE a IS NOT NULL AND ctid NOT IN (SELECT min(ctid) FROM ci GROUP BY a);
CREATE UNIQUE INDEX ci_dup ON ci (a);
INSERT INTO ci (a) VALUES (5);
INSERT INTO ci (a) VALUES (NULL);
CREATE UNIQUE INDEX ci_nulls ON ci (a) NULLS NOT DISTINCT;
SELECT rows FROM mot.check('ci');
-- Dropping, renaming, REINDEX.
DROP INDEX ci_dup;
INSERT INTO ci (a) VALUES (5);
SELECT count(*) FROM ci WHERE a = 5;
ALTER INDEX ci_late RENAME TO ci_renamed;
SELECT count(*) FROM ci WHERE c = 3;
REINDEX INDEX ci_renamed;
REINDEX TABLE ci;
SELECT count(*) FROM ci WHERE c = 3;
DROP INDEX ci_renamed, ci_named;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'ci'::regclass ORDER BY 1;
SELECT rows FROM mot.check('ci');
-- Only the owner may.
CREATE ROLE ci_user;
GRANT ALL ON ci TO ci_user;
GRANT ALL ON SCHEMA public TO ci_user;
SET ROLE ci_user;
CREATE INDEX ON ci (a);
DROP INDEX ci_unique;
RESET ROLE;
REVOKE ALL ON SCHEMA public FROM ci_user;
DROP FOREIGN TABLE ci;
DROP ROLE ci_user;
-- Rows of a transaction in progress are indexed too.
CREATE FOREIGN TABLE ci2 (a int, b int) SERVER mot;
BEGIN;
INSERT INTO ci2 SELECT i, -i FROM generate_series(1, 100) i;
SAVEPOINT s;
UPDATE ci2 SET b = 1000 + a WHERE a <= 10;
DELETE FROM ci2 WHERE a > 90;
CREATE UNIQUE INDEX ON ci2 (b);
SELECT count(*) FROM ci2 WHERE b > 1000;
SELECT count(*) FROM ci2 WHERE b = -95;
INSERT INTO ci2 VALUES (0, 1005);
ROLLBACK TO s;
CREATE INDEX ON ci2 (b DESC);
SELECT count(*) FROM ci2 WHERE b = -95;
COMMIT;
SELECT rows FROM mot.check('ci2');
-- A table in use by the session is not indexed under its feet.
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM ci2;
FETCH 1 FROM c;
CREATE INDEX ON ci2 (a);
ROLLBACK;
-- Clients are told which table and which constraint.
CREATE FUNCTION ci_names(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE t text; c text;
BEGIN
  EXECUTE statement;
  RETURN 'done';
EXCEPTION WHEN unique_violation THEN
  GET STACKED DIAGNOSTICS t = TABLE_NAME, c = CONSTRAINT_NAME;
  RETURN t || ' ' || c;
END $$;
CREATE FOREIGN TABLE ci_twice (a int PRIMARY KEY, b text) SERVER mot;
INSERT INTO ci_twice VALUES (1, 'x'), (2, 'x');
SELECT ci_names('ALTER TABLE ci_twice ADD CONSTRAINT ci_once UNIQUE (b)');
SELECT ci_names('CREATE UNIQUE INDEX ci_once ON ci_twice (b)');
SELECT ci_names('INSERT INTO ci_twice VALUES (1)');
DROP FUNCTION ci_names;
DROP FOREIGN TABLE ci_twice;
DROP TABLE ci_heap;
DROP FOREIGN TABLE ci2;
-- A long build, and a long check, end when they are cancelled. (That they do so at every step is tested in mot_engine/tests/cancel.rs.)
CREATE FOREIGN TABLE ci3 (a int PRIMARY KEY, b text) SERVER mot;
INSERT INTO ci3 SELECT i, md5(i::text) FROM generate_series(1, 400000) i;
\set VERBOSITY sqlstate
SET statement_timeout = '2ms';
CREATE INDEX ci3_b ON ci3 (b);
SELECT rows FROM mot.check('ci3');
SET statement_timeout = '25ms';
CREATE UNIQUE INDEX ci3_b ON ci3 (b, a);
SELECT rows FROM mot.check('ci3');
RESET statement_timeout;
\set VERBOSITY default
SELECT rows, entries FROM mot.check('ci3');
CREATE INDEX ci3_b ON ci3 (b);
SELECT rows, entries FROM mot.check('ci3');
DROP FOREIGN TABLE ci3;
-- Operator classes by btree's names mean the type's own order.
CREATE FOREIGN TABLE oc (a int, b text, c varchar(5), d bigint) SERVER mot;
CREATE INDEX oc_a ON oc (a int4_ops DESC, c varchar_ops, b text_ops);
CREATE INDEX oc_d ON oc (d pg_catalog.int8_ops);
CREATE INDEX ON oc (d int4_ops);
CREATE INDEX ON oc (b text_pattern_ops);
CREATE INDEX ON oc (a nope_ops);
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'oc'::regclass ORDER BY 1;
-- A heap table like a memory-optimized one has btrees.
ALTER TABLE oc ADD PRIMARY KEY (a), ADD UNIQUE (b, d);
CREATE TABLE oc_heap (LIKE oc INCLUDING ALL);
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'oc_heap'::regclass ORDER BY 1;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'oc_heap'::regclass AND contype <> 'n' ORDER BY 1;
INSERT INTO oc_heap VALUES (1, 'x', 'y', 2);
INSERT INTO oc_heap VALUES (1, 'x', 'y', 2);
CREATE INDEX ON oc_heap USING mot_index (a);
DROP TABLE oc_heap;
DROP FOREIGN TABLE oc;
-- A state that was replaced, or whose row is deleted, is no obstacle, whether the reclaimer has come by or not; one that a row has is.
CREATE FOREIGN TABLE long_before (id int PRIMARY KEY, c text) SERVER mot;
INSERT INTO long_before SELECT n, (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 600) i) FROM generate_series(1, 3) n;
CREATE INDEX ON long_before (c);
UPDATE long_before SET c = 'short' WHERE id = 1;
DELETE FROM long_before WHERE id = 2;
CREATE INDEX ON long_before (c);
UPDATE long_before SET c = 'shorter' WHERE id = 3;
CREATE INDEX ON long_before (c);
SET enable_seqscan = off;
SELECT id FROM long_before WHERE c = 'short';
RESET enable_seqscan;
SELECT rows FROM mot.check('long_before');
DROP FOREIGN TABLE long_before;
