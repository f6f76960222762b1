-- Whose index it is: every way to make an index of a memory-optimized table, and what such a table cannot index yet.
\set VERBOSITY default
SET client_min_messages = warning;
CREATE SCHEMA am_indexes;
SET search_path = am_indexes;
CREATE TABLE heap_like (a int PRIMARY KEY, b text, c numeric UNIQUE);
-- an index's name, access method, what kind of relation it is of, and whether core thinks it is usable
CREATE VIEW indexes AS
  SELECT t.relname AS table_name, i.relname AS index_name, m.amname, x.indisunique AS u, x.indisprimary AS p, x.indisvalid AND x.indisready AND x.indislive AS ok
  FROM pg_index x JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid JOIN pg_am m ON m.oid = i.relam
  WHERE t.relnamespace = 'am_indexes'::regnamespace ORDER BY 1, 2;

-- statements that make one
CREATE TABLE t (a int PRIMARY KEY, b text UNIQUE, c int, d numeric, e timestamptz) USING mot;
CREATE INDEX t_c ON t (c DESC, d);
CREATE INDEX t_named ON t USING btree (d);
CREATE INDEX t_named_ours ON t USING mot_index (e NULLS FIRST);
CREATE UNIQUE INDEX t_d ON t (d, a);
CREATE INDEX t_pattern ON t (b text_pattern_ops);
CREATE INDEX t_options ON t (c) WITH (fillfactor = 70);
ALTER TABLE t ADD CONSTRAINT t_key UNIQUE (c, d);
ALTER TABLE t ADD COLUMN f int UNIQUE;
CREATE TABLE t_like (LIKE t INCLUDING ALL) USING mot;
CREATE TABLE t_like_heap (LIKE t INCLUDING ALL);
CREATE TABLE t_of_heap (LIKE heap_like INCLUDING ALL) USING mot;
CREATE TABLE nulls (a int UNIQUE NULLS NOT DISTINCT) USING mot;
CREATE MATERIALIZED VIEW v USING mot AS SELECT 1 AS x;
CREATE UNIQUE INDEX ON v (x);
CREATE TABLE as_query USING mot AS SELECT g AS x FROM generate_series(1, 10) g;
CREATE INDEX ON as_query (x);
DO $$ BEGIN CREATE TABLE in_do (a int PRIMARY KEY) USING mot; EXECUTE 'CREATE INDEX in_do_idx ON in_do USING mot_index (a)'; END $$;
SELECT * FROM indexes;
SELECT pg_get_indexdef('t_c'::regclass), pg_get_indexdef('t_pattern'::regclass), pg_get_indexdef('t_options'::regclass);
-- rows go in, and keys hold, whichever way
INSERT INTO t VALUES (1, 'one', 1, 1, now(), 1), (2, 'two', 2, 2, now(), 2);
INSERT INTO t VALUES (1, 'three', 3, 3, now(), 3);
INSERT INTO t VALUES (3, 'two', 3, 3, now(), 3);
INSERT INTO t VALUES (3, 'three', 2, 2, now(), 3);
INSERT INTO t_like SELECT * FROM t;
INSERT INTO t_like SELECT * FROM t;
SELECT a, b, c, d FROM t ORDER BY a;
-- in the transaction that makes the table, under a savepoint, and rolled back
BEGIN;
CREATE TABLE mine (a int, b int) USING mot;
INSERT INTO mine SELECT g, -g FROM generate_series(1, 100) g;
CREATE UNIQUE INDEX mine_a ON mine (a);
SAVEPOINT s;
CREATE INDEX mine_b ON mine (b);
SELECT a FROM mine WHERE b = -7;
ROLLBACK TO s;
INSERT INTO mine VALUES (7, 0);
ROLLBACK TO s;
SELECT index_name, amname FROM indexes WHERE table_name = 'mine';
INSERT INTO mine VALUES (101, 0);
COMMIT;
SELECT count(*), min(a), max(a) FROM mine;

-- what cannot be indexed, by name
CREATE FUNCTION refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; hint text;
BEGIN
  EXECUTE statement;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
  RETURN state || ': ' || message || E'\n  hint: ' || hint;
END $$;
CREATE SCHEMA am_types;
CREATE TYPE am_types.pair AS (a int, b int);
CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE OPERATOR CLASS backward_ops FOR TYPE int4 USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 btint4cmp(int4, int4);
CREATE TABLE r (a int, b text, e jsonb, f int4range, g point, h tsvector) USING mot;
INSERT INTO r VALUES (1, 'x');
\pset format unaligned
\pset tuples_only on
SELECT s || E'\n  ' || refused(s) FROM unnest(ARRAY[
  'CREATE INDEX ON r (lower(b))',
  'CREATE INDEX ON r ((a + 1))',
  'CREATE INDEX ON r (a) WHERE a > 0',
  'ALTER TABLE r ADD EXCLUDE USING gist (f WITH &&)',
  'CREATE INDEX ON r (e)',
  'CREATE INDEX ON r (b COLLATE insensitive)',
  'CREATE INDEX ON r (a backward_ops)',
  'CREATE INDEX ON r USING hash (a)',
  'CREATE INDEX ON r USING brin (a)',
  'CREATE INDEX ON r USING gin (e)',
  'CREATE INDEX ON r USING gin (h)',
  'CREATE INDEX ON r USING gist (g)',
  'CREATE INDEX ON r USING spgist (g)',
  'CREATE TABLE r2 (a am_types.pair PRIMARY KEY) USING mot'
]) s;
\pset format aligned
\pset tuples_only off
SELECT * FROM indexes WHERE table_name LIKE 'r%' OR NOT ok;
-- core makes anew what REINDEX and TRUNCATE rebuild
REINDEX TABLE t;
REINDEX INDEX t_c;
SELECT index_name, amname, ok FROM indexes WHERE table_name = 't';
INSERT INTO t VALUES (2, 'four', 4, 4, now(), 4);
TRUNCATE t;
INSERT INTO t VALUES (2, 'four', 4, 4, now(), 4);
INSERT INTO t VALUES (2, 'five', 5, 5, now(), 5);

-- an index on a column whose collation orders otherwise than by bytes gives the order of the collation
CREATE COLLATION german (provider = icu, locale = 'de');
CREATE TABLE ordered (a text COLLATE "C", b text COLLATE german, c text COLLATE german, d int) USING mot;
INSERT INTO ordered SELECT x, x, x, n FROM unnest(ARRAY['b', 'B', 'a', 'A', 'Z', 'z', 'ä']) WITH ORDINALITY AS u (x, n);
CREATE INDEX ordered_a ON ordered (a);
CREATE INDEX ordered_b ON ordered (b);
CREATE INDEX ordered_c ON ordered (c text_pattern_ops);
CREATE INDEX ordered_d_b ON ordered (d, b);
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
-- without what 18 says of nodes that settings discourage, and what versions before it say of subqueries
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line !~ 'Disabled' THEN RETURN NEXT replace(line, ' (returns $0)', ''); END IF;
  END LOOP;
END $$;
SELECT plan('SELECT a FROM ordered ORDER BY a');
SELECT plan('SELECT b FROM ordered ORDER BY b');
SELECT plan('SELECT max(b) FROM ordered');
SELECT plan('SELECT c FROM ordered ORDER BY c USING ~<~');
SELECT plan('SELECT d FROM ordered ORDER BY d');
SELECT plan('SELECT d FROM ordered ORDER BY d, b');
SELECT plan('SELECT b FROM ordered WHERE d = 2 ORDER BY b');
SELECT plan('SELECT d FROM ordered WHERE b = ''a''');
SELECT plan('SELECT d FROM ordered WHERE b IN (''a'', ''Z'')');
SELECT a FROM ordered ORDER BY a;
SELECT b FROM ordered ORDER BY b;
SELECT c FROM ordered ORDER BY c USING ~<~;
SELECT max(a), max(b), min(b) FROM ordered;
SELECT d FROM ordered WHERE b = 'a';
SELECT d FROM ordered WHERE b IN ('a', 'Z') ORDER BY 1;
SELECT d FROM ordered WHERE b > 'a' ORDER BY 1;
SELECT d FROM ordered WHERE b >= 'a' AND b < 'b' ORDER BY 1;
-- and the columns behind it are in order where `=` fixes it
CREATE TABLE tasks (state text COLLATE german, fixed char(8) COLLATE german, at int, name name COLLATE german) USING mot;
CREATE INDEX tasks_state ON tasks (state, at DESC);
CREATE INDEX tasks_fixed ON tasks (fixed DESC, at, state);
CREATE INDEX tasks_name ON tasks (name, at);
INSERT INTO tasks SELECT x, x, n * 7 % 10, x FROM unnest(ARRAY['b', 'B', 'a', 'A', 'Z', 'z', 'ä', 'b', 'B', 'a']) WITH ORDINALITY AS u (x, n);
CREATE VIEW queries AS SELECT * FROM (VALUES
  ('SELECT at FROM tasks WHERE state = ''b'' ORDER BY at'), ('SELECT at, state FROM tasks WHERE state = ''b'' AND at > 0 ORDER BY state, at DESC LIMIT 1'),
  ('SELECT at FROM tasks WHERE fixed = ''B'' ORDER BY at, state'), ('SELECT max(at) FROM tasks WHERE state = ''a'''),
  ('SELECT state FROM tasks ORDER BY state USING ~<~'), ('SELECT state, at FROM tasks ORDER BY state, at DESC'), ('SELECT max(state) FROM tasks'),
  ('SELECT at FROM tasks WHERE state > ''a'' ORDER BY state, at'), ('SELECT at FROM tasks WHERE name = ''a'' COLLATE german ORDER BY at'),
  ('SELECT a.at, b.at FROM tasks a JOIN tasks b ON a.state = b.state AND a.at < b.at ORDER BY a.at'),
  ('SELECT state, count(*) FROM tasks GROUP BY state ORDER BY state'), ('SELECT a.at, b.b FROM tasks a FULL JOIN ordered b ON a.state = b.b ORDER BY 1, 2')) q (query);
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT plan(query) FROM queries;
CREATE TABLE tasks_heap AS TABLE tasks;
CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found record; said text := '';
BEGIN
  FOR found IN EXECUTE query LOOP said := said || found; END LOOP;
  RETURN said;
END $$;
SELECT query, rows_of(query), rows_of(query) = rows_of(replace(query, 'tasks', 'tasks_heap')) AS same FROM queries;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_bitmapscan;

SET client_min_messages = error;
DROP SCHEMA am_indexes, am_types CASCADE;
