-- What PostgreSQL 17 brought, on tables of the access method. Older servers end here.
SELECT current_setting('server_version_num')::int < 170000 AS is_older \gset
\if :is_older
  \quit
\endif
SET client_min_messages = warning;
CREATE SCHEMA am_17;
SET search_path = am_17;
CREATE FUNCTION methods(like_name text) RETURNS TABLE (name text, kind "char", method name) LANGUAGE sql AS $$
  SELECT relname, relkind, amname FROM pg_class c LEFT JOIN pg_am m ON m.oid = relam
  WHERE relname LIKE like_name AND relkind IN ('r', 'p', 'i', 'I') AND relnamespace = 'am_17'::regnamespace ORDER BY 1 $$;

-- A partitioned table has an access method, which its new partitions get.
CREATE TABLE p (a int, b int, c text, PRIMARY KEY (a, b)) PARTITION BY LIST (a) USING mot;
CREATE INDEX p_c ON p (c);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) USING heap;
CREATE TABLE p3 PARTITION OF p FOR VALUES IN (3) PARTITION BY LIST (b);
CREATE TABLE p31 PARTITION OF p3 FOR VALUES IN (1);
SELECT * FROM methods('p%');
INSERT INTO p VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 1, 'c');
INSERT INTO p VALUES (1, 1, 'x'), (2, 1, 'x'), (3, 1, 'x'), (1, 2, 'new') ON CONFLICT (a, b) DO UPDATE SET c = p.c || excluded.c RETURNING p.*;
-- Changes concern partitions to come; those that are there keep their own.
ALTER TABLE p SET ACCESS METHOD heap;
CREATE TABLE p6 PARTITION OF p FOR VALUES IN (6);
ALTER TABLE p SET ACCESS METHOD DEFAULT;
SELECT * FROM methods('p');
SET default_table_access_method = mot;
CREATE TABLE p7 PARTITION OF p FOR VALUES IN (7);
RESET default_table_access_method;
CREATE TABLE p8 PARTITION OF p FOR VALUES IN (8);
ALTER TABLE p SET ACCESS METHOD mot;
CREATE TABLE p9 PARTITION OF p FOR VALUES IN (9);
SELECT * FROM methods('p%') WHERE kind IN ('r', 'p');
ALTER TABLE p1 SET ACCESS METHOD heap;
ALTER TABLE p2 SET ACCESS METHOD mot;
ALTER TABLE p31 SET ACCESS METHOD DEFAULT;
SELECT * FROM methods('p%');
SELECT * FROM p ORDER BY a, b;
INSERT INTO p VALUES (2, 1, 'twice');
-- DEFAULT is the session's.
SET default_table_access_method = mot;
ALTER TABLE p1 SET ACCESS METHOD DEFAULT, ALTER b SET DEFAULT 5;
ALTER TABLE p1 SET ACCESS METHOD DEFAULT, SET ACCESS METHOD heap;
ALTER TABLE p1 SET ACCESS METHOD DEFAULT;
ALTER TABLE p1 SET ACCESS METHOD DEFAULT;
RESET default_table_access_method;
SELECT * FROM methods('p1%');
INSERT INTO p VALUES (1, 1, 'twice');
-- Identity columns of partitions.
CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY, k int, PRIMARY KEY (id, k)) PARTITION BY LIST (k) USING mot;
CREATE TABLE i1 PARTITION OF i FOR VALUES IN (1);
CREATE TABLE i2 PARTITION OF i FOR VALUES IN (2) USING heap;
INSERT INTO i (k) VALUES (1), (2);
INSERT INTO i1 (k) VALUES (1);
SELECT tableoid::regclass, * FROM i ORDER BY id;

-- A generated column gets another expression: its values and its indexes are made anew.
CREATE TABLE g (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED) USING mot;
CREATE INDEX g_g ON g (g);
CREATE UNIQUE INDEX g_g_id ON g (g, id);
CREATE INDEX g_a ON g (a);
INSERT INTO g (id, a) SELECT n, n FROM generate_series(1, 100) n;
ALTER TABLE g ALTER g SET EXPRESSION AS (a * 3);
SELECT * FROM methods('g%');
SET enable_seqscan = off;
SELECT id FROM g WHERE g = 30;
SELECT id FROM g WHERE g = 20;
SELECT id FROM g WHERE a = 20;
RESET enable_seqscan;
INSERT INTO g (id, a) VALUES (101, 101);
SELECT rows, entries FROM mot.check('g');
BEGIN;
ALTER TABLE g ALTER g SET EXPRESSION AS (1 / (a - a));
ROLLBACK;
SELECT g FROM g WHERE id = 101;
-- By way of a parent.
CREATE TABLE parent (a int, g int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE child (PRIMARY KEY (g)) INHERITS (parent) USING mot;
INSERT INTO child (a) VALUES (1), (2);
ALTER TABLE parent ALTER g SET EXPRESSION AS (a * 3);
SELECT * FROM parent ORDER BY a;
SELECT a FROM child WHERE g = 6;
INSERT INTO child (a) VALUES (2);

-- MERGE: views, RETURNING, rows that only the target has.
CREATE TABLE m (id int PRIMARY KEY, a int) USING mot;
INSERT INTO m VALUES (1, 1), (2, 2), (3, 3);
CREATE VIEW v AS SELECT id, a FROM m WHERE id < 10;
MERGE INTO v USING (VALUES (1, 10), (4, 40)) s (id, a) ON v.id = s.id
  WHEN MATCHED THEN UPDATE SET a = s.a
  WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (s.id, s.a)
  WHEN NOT MATCHED BY SOURCE AND v.id = 2 THEN DELETE
  WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = -a
  RETURNING merge_action(), v.*;
SELECT * FROM m ORDER BY id;
WITH changed AS (MERGE INTO m USING (VALUES (1, 10), (5, 50)) s (id, a) ON m.id = s.id
  WHEN MATCHED AND m.a = s.a THEN DELETE
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a)
  WHEN NOT MATCHED BY SOURCE THEN DO NOTHING RETURNING merge_action() AS what, m.id)
  SELECT * FROM changed ORDER BY id;
SELECT * FROM m ORDER BY id;
MERGE INTO m USING (VALUES (3), (3)) s (id) ON m.id = s.id WHEN MATCHED THEN UPDATE SET a = 0;
SELECT rows FROM mot.check('m');

-- COPY passes over rows that cannot be read.
COPY m FROM stdin WITH (ON_ERROR ignore);
6	6
7	seven
8	8
\.
SELECT * FROM m WHERE id > 5 ORDER BY id;
-- Who has MAINTAIN may do what the owner may for upkeep.
CREATE ROLE am_17_keeper;
GRANT USAGE ON SCHEMA am_17 TO am_17_keeper;
SET ROLE am_17_keeper;
ANALYZE m;
VACUUM m;
REINDEX TABLE m;
LOCK TABLE m;
RESET ROLE;
GRANT MAINTAIN ON m TO am_17_keeper;
SET ROLE am_17_keeper;
ANALYZE m;
VACUUM m;
REINDEX TABLE m;
REINDEX INDEX m_pkey;
BEGIN;
LOCK TABLE m;
ROLLBACK;
SELECT * FROM m;
RESET ROLE;
SELECT rows FROM mot.check('m');
DROP OWNED BY am_17_keeper;
DROP ROLE am_17_keeper;

-- A domain's check is asked for, with the rights that it takes, wherever a statement reads a text
-- as that domain.
CREATE ROLE am_17_reader;
GRANT USAGE ON SCHEMA am_17 TO am_17_reader;
CREATE TABLE d (id int PRIMARY KEY) USING mot;
INSERT INTO d VALUES (1);
GRANT SELECT ON d TO am_17_reader;
CREATE FUNCTION small(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN $1 < 10; END $$;
REVOKE EXECUTE ON FUNCTION small FROM PUBLIC;
CREATE DOMAIN number AS int CHECK (small(VALUE));
SET plan_cache_mode = force_generic_plan;
PREPARE valid(int) AS SELECT id, pg_input_is_valid('5', 'am_17.number') FROM d WHERE id = $1;
EXECUTE valid(1);
EXECUTE valid(1);
EXECUTE valid(1);
SET ROLE am_17_reader;
EXECUTE valid(1);
RESET ROLE;
DEALLOCATE valid;
RESET plan_cache_mode;
DROP OWNED BY am_17_reader;
DROP ROLE am_17_reader;
SET client_min_messages = error;
DROP SCHEMA am_17 CASCADE;
