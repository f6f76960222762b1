-- Publications and tables of the access method.
\set VERBOSITY terse
-- Logical decoding does not carry these tables: a publication that names one is refused, one that leaves it out in silence says so.
CREATE TABLE am_published (id int PRIMARY KEY) USING mot;
CREATE PUBLICATION am_named FOR TABLE am_published;
SET client_min_messages = warning;
CREATE PUBLICATION am_all FOR ALL TABLES;
RESET client_min_messages;
CREATE TABLE am_unpublished (id int PRIMARY KEY) USING mot;
CREATE TABLE am_unpublished_too USING mot AS SELECT 1 AS id;
DROP PUBLICATION am_all;
CREATE SCHEMA am_published_schema;
CREATE PUBLICATION am_in_schema FOR TABLES IN SCHEMA am_published_schema;
CREATE TABLE am_published_schema.t (id int PRIMARY KEY) USING mot;
CREATE TABLE am_beside_schema (id int PRIMARY KEY) USING mot;
DROP PUBLICATION am_in_schema;
DROP TABLE am_published_schema.t, am_beside_schema, am_unpublished, am_unpublished_too;
DROP SCHEMA am_published_schema;
-- The same for tables that come below a published one, or change their kind.
CREATE TABLE am_published_above (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE am_published_mid PARTITION OF am_published_above FOR VALUES FROM (0) TO (100) PARTITION BY RANGE (id);
CREATE PUBLICATION am_above FOR TABLE am_published_above;
CREATE TABLE am_published_part PARTITION OF am_published_mid FOR VALUES FROM (0) TO (9) USING mot;
SET default_table_access_method = mot;
CREATE TABLE am_published_part PARTITION OF am_published_mid FOR VALUES FROM (0) TO (9);
RESET default_table_access_method;
ALTER TABLE am_published_mid ATTACH PARTITION am_published FOR VALUES FROM (10) TO (19);
CREATE TABLE am_published_part PARTITION OF am_published_mid FOR VALUES FROM (0) TO (9);
ALTER TABLE am_published_part SET ACCESS METHOD mot;
CREATE TABLE am_published_heap (id int PRIMARY KEY);
ALTER PUBLICATION am_above ADD TABLE am_published_heap;
ALTER TABLE am_published_heap SET ACCESS METHOD mot;
CREATE TABLE am_published_child () INHERITS (am_published_heap) USING mot;
DROP PUBLICATION am_above;
ALTER TABLE am_published_mid ATTACH PARTITION am_published FOR VALUES FROM (10) TO (19);
DROP TABLE am_published_above, am_published_child, am_published_heap;
-- Whose table it is needs no rights on catalogs.
CREATE ROLE am_publisher;
CREATE SCHEMA am_publisher AUTHORIZATION am_publisher;
BEGIN;
REVOKE SELECT ON pg_publication, pg_publication_rel, pg_inherits FROM PUBLIC;
SET LOCAL ROLE am_publisher;
CREATE TABLE am_publisher.t (id int PRIMARY KEY) USING mot;
INSERT INTO am_publisher.t VALUES (1) RETURNING id, current_user = 'am_publisher' AS is_theirs;
ROLLBACK;
DROP SCHEMA am_publisher;
DROP ROLE am_publisher;
