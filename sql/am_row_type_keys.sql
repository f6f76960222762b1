-- Keys of row types: what they are compared with, and row types that get or lose a column while
-- keys hold their values.
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on
\pset null NULL
CREATE SCHEMA row_keys;
SET search_path = row_keys;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET jit = off;
CREATE TYPE pair AS (a int, b text COLLATE "C");
CREATE DOMAIN noted AS pair;
CREATE TYPE holder AS (p pair, n numeric);
CREATE TABLE t (id int PRIMARY KEY, p pair UNIQUE, h holder, ps pair[], d noted) USING mot;
CREATE INDEX t_h ON t (h DESC NULLS LAST, id);
CREATE UNIQUE INDEX t_ps ON t (ps);
CREATE UNIQUE INDEX t_some ON t (d) WHERE id > 3;
CREATE INDEX t_made ON t ((ROW(id % 3, p)::text), (ROW(ROW(id % 2, 'x'), id)::holder));
INSERT INTO t SELECT i, p, ROW(p, i / 2.0)::holder, ARRAY[NULL, p], p FROM generate_series(1, 9) i, LATERAL (SELECT ROW(i % 7, 'x' || i)::pair) s (p);
-- A value of the type, or a ROW() of the same columns
EXPLAIN (COSTS OFF) SELECT id FROM t WHERE p = ROW(3, 'x3'::text COLLATE "C");
SELECT id FROM t WHERE p = ROW(3, 'x3')::pair;
SELECT id FROM t WHERE p = ROW(3, 'x3'::text COLLATE "C");
SELECT id FROM t WHERE p IN (ROW(3, 'x3'::text COLLATE "C"), ROW(4, 'x4'::text COLLATE "C"), ROW(4, NULL::text COLLATE "C"));
SELECT id FROM t WHERE p > ROW(5, NULL)::pair ORDER BY p;
SELECT id FROM t WHERE p BETWEEN ROW(1, 'x8')::pair AND ROW(2, 'x2')::pair ORDER BY p DESC;
SELECT id FROM t WHERE h < ROW(ROW(3, 'x3'), 1.50)::holder ORDER BY h DESC NULLS LAST, id;
SELECT id FROM t WHERE id > 3 AND d = ROW(4, 'x4')::noted;
SELECT id FROM t WHERE ROW(ROW(id % 2, 'x'), id)::holder = ROW(ROW(0, 'x'), 6)::holder AND ROW(id % 3, p)::text ~ '^.0';
PREPARE of_any (pair) AS SELECT id FROM t WHERE p = $1;
EXECUTE of_any (ROW(3, 'x3')::pair);
EXECUTE of_any (ROW(3, 'x3'::text COLLATE "C"));
EXECUTE of_any (NULL);
-- A value of another one
SELECT id FROM t WHERE p = ROW(3, 'x3');
SELECT id FROM t WHERE p = ROW(3, 'x3'::text);
SELECT id FROM t WHERE p = ROW(3, 3);
SELECT id FROM t WHERE p = ROW(3);
-- The type gets a column: old values have NULL there
ALTER TYPE pair ADD ATTRIBUTE c int;
INSERT INTO t (id, p) VALUES (10, ROW(3, 'x3', NULL));
INSERT INTO t VALUES (12, ROW(3, 'x3', 1), NULL, ARRAY[ROW(3, 'x3', 1), NULL]::pair[], ROW(4, 'x4', 1));
INSERT INTO t (id, ps) VALUES (11, ARRAY[NULL, ROW(3, 'x3', NULL)]::pair[]);
INSERT INTO t (id, d) VALUES (11, ROW(4, 'x4', NULL));
SELECT id, p FROM t WHERE p >= ROW(3, 'x3', 1)::pair AND p <= ROW(3, 'x3', NULL)::pair ORDER BY p;
-- and is rolled back
BEGIN;
ALTER TYPE pair ADD ATTRIBUTE e text;
INSERT INTO t (id, p) VALUES (11, ROW(3, 'x3', 1, 'new'));
ROLLBACK;
INSERT INTO t (id, p) VALUES (11, ROW(3, 'x3', 1));
SELECT rows, entries > 0 FROM mot.check('t');
-- The type loses a column
ALTER TYPE pair DROP ATTRIBUTE b;
DELETE FROM t WHERE id > 6;
ALTER TYPE pair DROP ATTRIBUTE b;
INSERT INTO t (id, p) VALUES (10, ROW(3, NULL));
SELECT id, p FROM t WHERE p = ROW(3, NULL::int);
SELECT id, h FROM t ORDER BY h DESC NULLS LAST, id;
SELECT rows, entries > 0 FROM mot.check('t');
-- by a column's type that goes
CREATE TYPE mood AS ENUM ('low', 'high');
ALTER TYPE pair ADD ATTRIBUTE m mood;
UPDATE t SET p = ROW((p).a, (p).c, 'low');
INSERT INTO t (id, p) VALUES (10, ROW(3, NULL, 'high'));
DROP TYPE mood CASCADE;
DELETE FROM t WHERE id = 10;
DROP TYPE mood CASCADE;
INSERT INTO t (id, p) VALUES (10, ROW(3, NULL));
SELECT rows, entries > 0 FROM mot.check('t');
-- Another relation's column in an expression: the index is made anew when its type changes
CREATE TABLE given (x int, y varchar(5));
CREATE TYPE told AS (x int, y varchar(5));
CREATE TABLE by_given (id int PRIMARY KEY, v int, EXCLUDE (((ROW(v, 'k')::given).x) WITH =)) USING mot;
CREATE INDEX by_given_x ON by_given (((ROW(v, 'k')::given).x + 1)) WHERE (ROW(v, 'k')::given).y = 'k';
CREATE INDEX by_told_y ON by_given (((ROW(v, 'y' || v)::told).y));
INSERT INTO by_given SELECT i, i FROM generate_series(1, 5) i;
ALTER TABLE given ALTER x TYPE bigint;
ALTER TABLE given ALTER y TYPE varchar(9);
ALTER TYPE told ALTER ATTRIBUTE x TYPE bigint;
ALTER TYPE told ALTER ATTRIBUTE y TYPE varchar(9);
SELECT relname, amname, pg_get_indexdef(c.oid) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname LIKE 'by\_%' ORDER BY 1;
SELECT id FROM by_given WHERE (ROW(v, 'k')::given).x = 3;
SELECT id FROM by_given WHERE (ROW(v, 'y' || v)::told).y = 'y4';
INSERT INTO by_given VALUES (6, 5);
SELECT rows, entries FROM mot.check('by_given');
DROP TABLE by_given, given;
DROP TYPE told;
-- What has no encoding, inside a row type
\set VERBOSITY sqlstate
ALTER TYPE pair ADD ATTRIBUTE place point;
\set VERBOSITY default
CREATE TYPE placed AS (n int, place point);
-- From 17 on no path of the session's says how a type is named while an index is made.
SET search_path = '';
ALTER TABLE row_keys.t ADD COLUMN l row_keys.placed UNIQUE;
SET search_path = row_keys;
-- A table's row type, with a column that its older rows lack
CREATE TABLE item (n int);
INSERT INTO item VALUES (1), (2);
ALTER TABLE item ADD COLUMN word text COLLATE "C" DEFAULT 'none';
CREATE TABLE u (i item PRIMARY KEY) USING mot;
INSERT INTO u SELECT item FROM item;
INSERT INTO u VALUES (ROW(1, 'none'));
ALTER TABLE item ADD COLUMN more int;
INSERT INTO u VALUES (ROW(1, 'none', NULL));
INSERT INTO u VALUES (ROW(1, 'none', 4));
SELECT i FROM u ORDER BY i;
ALTER TABLE item DROP COLUMN n;
DELETE FROM u WHERE (i).n = 2;
ALTER TABLE item DROP COLUMN n;
SELECT i FROM u WHERE i > ROW('none', 3)::item;
CREATE TABLE child () INHERITS (item);
CREATE TABLE v (c child[] PRIMARY KEY) USING mot;
INSERT INTO v VALUES (ARRAY[ROW('a', 1)]::child[]);
ALTER TABLE item ADD COLUMN last numeric;
INSERT INTO v VALUES (ARRAY[ROW('a', 1, NULL)]::child[]);
INSERT INTO v VALUES (ARRAY[ROW('a', 1, 2.0)]::child[]);
INSERT INTO v VALUES (ARRAY[ROW('a', 1, 2)]::child[]);
SELECT rows FROM unnest(ARRAY['u', 'v']) r, mot.check(r::regclass);
-- The row types of another server's table, and of a view that is replaced
SET client_min_messages = warning;
CREATE FOREIGN DATA WRAPPER row_keys_elsewhere;
CREATE SERVER row_keys_server FOREIGN DATA WRAPPER row_keys_elsewhere;
CREATE FOREIGN TABLE far (a int, b int) SERVER row_keys_server;
CREATE TABLE w (x far) USING mot;
CREATE UNIQUE INDEX ON w (x);
INSERT INTO w VALUES (ROW(1, 2));
ALTER FOREIGN TABLE far DROP COLUMN b;
SET enable_seqscan = off;
SELECT * FROM w WHERE x = ROW(1)::far;
INSERT INTO w VALUES (ROW(1));
CREATE VIEW one AS SELECT 1 AS a;
CREATE TABLE y (x one) USING mot;
CREATE INDEX ON y (x);
INSERT INTO y VALUES (ROW(1));
CREATE OR REPLACE VIEW one AS SELECT 1 AS a, 2 AS b;
INSERT INTO y VALUES (ROW(1, 2));
SELECT * FROM y WHERE x = ROW(1, 2)::one;
SELECT * FROM y WHERE x = ROW(1, NULL)::one;
RESET enable_seqscan;
SELECT rows FROM unnest(ARRAY['w', 'y']) r, mot.check(r::regclass);
DROP SERVER row_keys_server CASCADE;
DROP FOREIGN DATA WRAPPER row_keys_elsewhere;
DROP SCHEMA row_keys CASCADE;
