-- What PostgreSQL 17 brought, on memory-optimized tables. Older servers end here.
SELECT current_setting('server_version_num')::int < 170000 AS is_older \gset
\if :is_older
  \quit
\endif
CREATE FOREIGN TABLE p17 (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED) SERVER mot;
INSERT INTO p17 (id, a) VALUES (1, 1), (2, 2);
-- A generated column's expression cannot be changed under its values, by way of a parent neither.
ALTER TABLE p17 ALTER g SET EXPRESSION AS (a * 3);
CREATE TABLE p17_parent (a int, g int GENERATED ALWAYS AS (a * 2) STORED);
CREATE FOREIGN TABLE p17_child () INHERITS (p17_parent) SERVER mot;
INSERT INTO p17_child (a) VALUES (1);
ALTER TABLE p17_parent ALTER g SET EXPRESSION AS (a * 3);
SELECT * FROM p17_parent;
-- MERGE takes views, but not over a memory-optimized table.
CREATE VIEW p17_view AS SELECT id, a FROM p17;
MERGE INTO p17_view v USING (VALUES (1, 10)) s(id, a) ON v.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a RETURNING merge_action(), v.*;
INSERT INTO p17_view VALUES (3, 3);
-- COPY passes over rows that cannot be read.
COPY p17 (id, a) FROM stdin WITH (ON_ERROR ignore);
4	4
5	five
6	6
\.
SELECT * FROM p17 ORDER BY id;
-- Who has MAINTAIN may do what the owner may for upkeep.
CREATE ROLE p17_keeper;
SET ROLE p17_keeper;
ANALYZE p17;
REINDEX TABLE p17;
BEGIN;
LOCK TABLE p17;
ROLLBACK;
RESET ROLE;
GRANT MAINTAIN ON p17 TO p17_keeper;
SET ROLE p17_keeper;
ANALYZE p17;
REINDEX TABLE p17;
REINDEX INDEX p17_pkey;
BEGIN;
LOCK TABLE p17;
ROLLBACK;
SELECT * FROM p17;
RESET ROLE;
SELECT rows FROM mot.check('p17');
DROP VIEW p17_view;
DROP FOREIGN TABLE p17;
DROP TABLE p17_parent CASCADE;
DROP ROLE p17_keeper;
