-- Rows that the bounds of a new partition leave in the wrong place: refused, as for heap tables.
SET client_min_messages = error;
CREATE TABLE pb (a int, b text) PARTITION BY RANGE (a);
CREATE FOREIGN TABLE pb_low PARTITION OF pb FOR VALUES FROM (0) TO (10) SERVER mot;
CREATE FOREIGN TABLE pb_rest PARTITION OF pb DEFAULT SERVER mot;
INSERT INTO pb SELECT i, 'row ' || i FROM generate_series(0, 24) i;
-- a partition takes values that the default one has rows of
CREATE FOREIGN TABLE pb_mid PARTITION OF pb FOR VALUES FROM (20) TO (30) SERVER mot;
CREATE TABLE pb_mid PARTITION OF pb FOR VALUES FROM (20) TO (30);
CREATE TABLE pb_mid (a int, b text);
ALTER TABLE pb ATTACH PARTITION pb_mid FOR VALUES FROM (20) TO (30);
SELECT a, tableoid::regclass FROM pb WHERE a BETWEEN 22 AND 30 ORDER BY a;
CREATE FOREIGN TABLE pb_high PARTITION OF pb FOR VALUES FROM (30) TO (40) SERVER mot;
INSERT INTO pb VALUES (30, 'row 30');
SELECT a, tableoid::regclass FROM pb WHERE a BETWEEN 22 AND 30 ORDER BY a;
-- under the latest snapshot, with the planner free to believe the bounds
SET constraint_exclusion = on;
ALTER TABLE pb ATTACH PARTITION pb_mid FOR VALUES FROM (20) TO (30);
DELETE FROM pb WHERE a >= 20;
ALTER TABLE pb ATTACH PARTITION pb_mid FOR VALUES FROM (20) TO (30);
INSERT INTO pb VALUES (20, 'again') RETURNING tableoid::regclass, *;
-- a table that has rows of other values
CREATE FOREIGN TABLE pb_in (a int, b text) SERVER mot;
INSERT INTO pb_in VALUES (50, 'in'), (49, 'out'), (NULL, 'nowhere');
ALTER TABLE pb ATTACH PARTITION pb_in FOR VALUES FROM (50) TO (60);
DELETE FROM pb_in WHERE a IS NULL;
ALTER TABLE pb ATTACH PARTITION pb_in FOR VALUES FROM (50) TO (60);
DELETE FROM pb_in WHERE b = 'out';
ALTER TABLE pb ATTACH PARTITION pb_in FOR VALUES FROM (50) TO (60);
SELECT * FROM pb WHERE a BETWEEN 45 AND 60 ORDER BY a;
-- as the default partition; below another level; by hash
ALTER TABLE pb DETACH PARTITION pb_rest;
INSERT INTO pb_rest VALUES (5, 'belongs to pb_low');
ALTER TABLE pb ATTACH PARTITION pb_rest DEFAULT;
DELETE FROM pb_rest WHERE a = 5;
ALTER TABLE pb ATTACH PARTITION pb_rest DEFAULT;
CREATE TABLE pb_sub (a int, b text) PARTITION BY LIST (b);
CREATE FOREIGN TABLE pb_sub_x PARTITION OF pb_sub FOR VALUES IN ('x') SERVER mot;
CREATE FOREIGN TABLE pb_sub_rest PARTITION OF pb_sub DEFAULT SERVER mot;
INSERT INTO pb_sub VALUES (70, 'x'), (71, 'y'), (80, 'x');
ALTER TABLE pb ATTACH PARTITION pb_sub FOR VALUES FROM (70) TO (80);
DELETE FROM pb_sub WHERE a = 80;
ALTER TABLE pb ATTACH PARTITION pb_sub FOR VALUES FROM (70) TO (80);
CREATE TABLE pb_y PARTITION OF pb_sub FOR VALUES IN ('y');
CREATE TABLE pb_hash (a int) PARTITION BY HASH (a);
CREATE FOREIGN TABLE pb_hash_0 (a int) SERVER mot;
INSERT INTO pb_hash_0 SELECT generate_series(1, 10);
ALTER TABLE pb_hash ATTACH PARTITION pb_hash_0 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
ALTER TABLE pb_hash ATTACH PARTITION pb_hash_0 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE FUNCTION pb_names(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE schema text; tab text; state text;
BEGIN
  EXECUTE command;
  RETURN 'no error';
EXCEPTION WHEN check_violation THEN
  GET STACKED DIAGNOSTICS schema = SCHEMA_NAME, tab = TABLE_NAME, state = RETURNED_SQLSTATE;
  RETURN concat_ws(' ', state, schema, tab);
END $$;
SELECT pb_names('CREATE TABLE pb_y PARTITION OF pb_sub FOR VALUES IN (''y'')');
RESET constraint_exclusion;
SELECT tableoid::regclass, count(*) FROM pb GROUP BY 1 ORDER BY 1;
DROP TABLE pb, pb_hash CASCADE;
DROP FUNCTION pb_names;
-- What is said of all rows is found out by looking at them, whatever the planner believes.
SET constraint_exclusion = on;
CREATE FOREIGN TABLE pb_check (a int PRIMARY KEY, b int) SERVER mot;
INSERT INTO pb_check SELECT i, i FROM generate_series(1, 10) i;
ALTER TABLE pb_check ADD CONSTRAINT pb_large CHECK (b > 5);
ALTER TABLE pb_check ADD CONSTRAINT pb_later CHECK (b > 5) NOT VALID;
ALTER TABLE pb_check VALIDATE CONSTRAINT pb_later;
ALTER TABLE pb_check ADD CONSTRAINT pb_null CHECK (b IS NULL);
SELECT count(*) FROM pb_check WHERE b <= 5;
DELETE FROM pb_check WHERE b <= 5;
UPDATE pb_check SET b = NULL WHERE a = 10;
ALTER TABLE pb_check VALIDATE CONSTRAINT pb_later;
SELECT count(*) FROM pb_check WHERE b <= 5;
RESET constraint_exclusion;
DROP FOREIGN TABLE pb_check;
-- A domain's new constraint is a matter of columns of domains over it, too; one that is NOT VALID of none.
CREATE DOMAIN pb_inner AS int;
CREATE DOMAIN pb_outer AS pb_inner;
CREATE FOREIGN TABLE pb_domain (a int, d pb_outer) SERVER mot;
INSERT INTO pb_domain VALUES (1, 5), (2, NULL);
ALTER DOMAIN pb_inner ADD CHECK (VALUE < 3);
ALTER DOMAIN pb_inner SET NOT NULL;
ALTER DOMAIN pb_inner ADD CONSTRAINT pb_later CHECK (VALUE < 3) NOT VALID;
INSERT INTO pb_domain VALUES (3, 4);
ALTER DOMAIN pb_inner VALIDATE CONSTRAINT pb_later;
DELETE FROM pb_domain WHERE d >= 3;
ALTER DOMAIN pb_inner VALIDATE CONSTRAINT pb_later;
SELECT * FROM pb_domain;
DROP FOREIGN TABLE pb_domain;
DROP DOMAIN pb_outer, pb_inner;
-- UPDATE of a partition by its name tests the bounds first, then constraints, as of a heap table beside it.
CREATE TABLE pb_named (id int NOT NULL, k int, CHECK (k < 1000)) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE pb_mot PARTITION OF pb_named FOR VALUES FROM (10) TO (20) SERVER mot;
CREATE TABLE pb_heap PARTITION OF pb_named FOR VALUES FROM (20) TO (30);
INSERT INTO pb_named VALUES (16, 1), (26, 1);
UPDATE pb_mot SET id = NULL WHERE id = 16;
UPDATE pb_heap SET id = NULL WHERE id = 26;
UPDATE pb_mot SET id = 99, k = 5000;
UPDATE pb_heap SET id = 99, k = 5000;
UPDATE pb_mot SET k = 5000 WHERE id = 16;
UPDATE pb_heap SET k = 5000 WHERE id = 26;
INSERT INTO pb_mot VALUES (NULL, 1);
INSERT INTO pb_heap VALUES (NULL, 1);
SELECT * FROM pb_named ORDER BY id;
DROP TABLE pb_named;
