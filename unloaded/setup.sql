CREATE EXTENSION mot;
CREATE DOMAIN kept_domain AS int;
CREATE FOREIGN TABLE kept (id int PRIMARY KEY, v int, d kept_domain) SERVER mot;
CREATE INDEX ON kept (v);
INSERT INTO kept SELECT i, i, i FROM generate_series(1, 100) i;
CREATE SCHEMA kept_schema;
CREATE FOREIGN TABLE kept_schema.inside (a int PRIMARY KEY) SERVER mot;
CREATE TABLE kept_parent (id int, v int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE kept_child PARTITION OF kept_parent DEFAULT SERVER mot;
CREATE ROLE kept_owner;
CREATE FOREIGN TABLE owned (a int) SERVER mot;
ALTER TABLE owned OWNER TO kept_owner;
CREATE DATABASE gone;
\c gone
CREATE EXTENSION mot;
CREATE FOREIGN TABLE given_up (a int PRIMARY KEY) SERVER mot;
INSERT INTO given_up VALUES (1);
