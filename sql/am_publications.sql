-- Publications of tables of the access method: what core asks of a published table holds. What is
-- sent is in ha/t/063_logical_decoding.pl.
\set VERBOSITY terse
SET client_min_messages = error;
CREATE TABLE am_published (id int PRIMARY KEY, n int) USING mot;
CREATE TABLE am_unnamed (id int, n int) USING mot;
CREATE UNLOGGED TABLE am_not_logged (id int PRIMARY KEY) USING mot;
CREATE TABLE am_above (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE am_heap_part PARTITION OF am_above FOR VALUES FROM (0) TO (10) USING heap;
CREATE PUBLICATION am_named FOR TABLE am_published (id) WHERE (id > 1), am_unnamed, am_above;
ALTER PUBLICATION am_named ADD TABLE am_not_logged;
CREATE TABLE am_mot_part PARTITION OF am_above FOR VALUES FROM (10) TO (20) USING mot;
SELECT tablename, attnames, rowfilter FROM pg_publication_tables WHERE pubname = 'am_named' ORDER BY 1;
-- A publication that names changed rows wants a replica identity, whichever way a statement goes.
INSERT INTO am_unnamed VALUES (1, 1), (2, 2);
UPDATE am_unnamed SET n = 3;
DELETE FROM am_unnamed;
PREPARE am_update AS UPDATE am_unnamed SET n = n + 1 WHERE id = 1;
EXECUTE am_update;
ALTER TABLE am_unnamed REPLICA IDENTITY FULL;
EXECUTE am_update;
EXECUTE am_update;
ALTER TABLE am_unnamed REPLICA IDENTITY NOTHING;
EXECUTE am_update;
ALTER PUBLICATION am_named SET (publish = 'insert');
EXECUTE am_update;
SELECT * FROM am_unnamed ORDER BY id;
DROP PUBLICATION am_named;
CREATE PUBLICATION am_all FOR ALL TABLES;
CREATE TABLE am_later (id int) USING mot;
INSERT INTO am_later VALUES (1);
UPDATE am_later SET id = 2;
DROP PUBLICATION am_all;
UPDATE am_later SET id = 2;
DROP TABLE am_published, am_unnamed, am_not_logged, am_above, am_later;
