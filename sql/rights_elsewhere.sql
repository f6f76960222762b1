-- What heap tables need no right for needs none here: the schema of a table that core goes to by its oid, and ANALYZE by the owner of the database.
SET client_min_messages = error;
CREATE ROLE re_common;
CREATE ROLE re_team;
CREATE SCHEMA re_shared AUTHORIZATION re_common;
CREATE SCHEMA re_closed AUTHORIZATION re_team;
CREATE DOMAIN re_shared.d AS int;
ALTER DOMAIN re_shared.d OWNER TO re_common;
CREATE TABLE re_shared.parent (a int, b int) PARTITION BY LIST (a);
ALTER TABLE re_shared.parent OWNER TO re_common;
CREATE FOREIGN TABLE re_closed.t (a re_shared.d) SERVER mot;
CREATE FOREIGN TABLE re_closed.p1 PARTITION OF re_shared.parent FOR VALUES IN (1) SERVER mot;
CREATE FOREIGN TABLE re_closed.rest PARTITION OF re_shared.parent DEFAULT SERVER mot;
INSERT INTO re_closed.t VALUES (1);
INSERT INTO re_shared.parent VALUES (1, 1), (2, 2);
ALTER FOREIGN TABLE re_closed.t OWNER TO re_team;
ALTER FOREIGN TABLE re_closed.p1 OWNER TO re_common;
ALTER FOREIGN TABLE re_closed.rest OWNER TO re_common;
SET ROLE re_common;
ALTER DOMAIN re_shared.d ADD CHECK (VALUE > 0);
ALTER DOMAIN re_shared.d ADD CHECK (VALUE > 1);
ALTER TABLE re_shared.parent ADD COLUMN c int NOT NULL DEFAULT 7;
ALTER TABLE re_shared.parent ADD CHECK (b < 2);
ALTER TABLE re_shared.parent ALTER b SET NOT NULL;
CREATE TABLE re_shared.p2 PARTITION OF re_shared.parent FOR VALUES IN (2);
CREATE TABLE re_shared.p3 PARTITION OF re_shared.parent FOR VALUES IN (3);
SELECT a, b, c FROM re_shared.parent ORDER BY a;
RESET ROLE;
-- A schema in which one may make tables, and look nothing up.
CREATE SCHEMA re_blind;
GRANT CREATE ON SCHEMA re_blind TO re_team;
SET ROLE re_team;
CREATE FOREIGN TABLE re_blind.t (a int) SERVER mot;
CREATE TABLE re_blind.heap (a int);
-- Core looks the table of a key up.
CREATE FOREIGN TABLE re_blind.keyed (a int PRIMARY KEY) SERVER mot;
CREATE TABLE re_blind.heap_keyed (a int PRIMARY KEY);
RESET ROLE;
INSERT INTO re_blind.t VALUES (1);
SELECT * FROM re_blind.t;
-- A dump says what its tables are, and they are restored as that.
SET default_table_access_method = mot;
CREATE TABLE re_shared.one (a int PRIMARY KEY);
SET default_table_access_method = heap;
CREATE TABLE re_shared.two (a int PRIMARY KEY);
CREATE TABLE re_shared.three AS SELECT 1 AS a;
SET default_table_access_method = mot;
CREATE TABLE re_shared.four AS SELECT 1 AS a;
RESET default_table_access_method;
SELECT relname, amname FROM pg_class c JOIN pg_am m ON m.oid = relam WHERE relnamespace = 're_shared'::regnamespace AND relkind = 'r' ORDER BY 1;
-- The owner of the database.
SELECT datdba::regrole AS owner, current_database() AS name FROM pg_database WHERE datname = current_database() \gset
CREATE TABLE re_closed.heap AS SELECT 1 AS a;
ALTER TABLE re_closed.heap OWNER TO re_team;
UPDATE pg_class SET reltuples = -1 WHERE oid IN ('re_closed.t'::regclass, 're_closed.heap'::regclass);
ALTER DATABASE :"name" OWNER TO re_common;
SET ROLE re_common;
ANALYZE;
RESET ROLE;
ALTER DATABASE :"name" OWNER TO :owner;
SELECT relname, reltuples FROM pg_class WHERE oid IN ('re_closed.t'::regclass, 're_closed.heap'::regclass) ORDER BY 1;
DROP SCHEMA re_shared, re_closed, re_blind CASCADE;
DROP ROLE re_common, re_team;
