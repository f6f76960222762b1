-- Indexes on expressions and partial ones: what heap does is done.
\set VERBOSITY default
SET client_min_messages = warning;
CREATE SCHEMA am_computed;
CREATE SCHEMA of_heap;
CREATE SCHEMA of_mot;
-- Runs a statement in a schema of each access method, and shows what came of it.
CREATE FUNCTION am_computed.outcome(method text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text; state text; message text; detail text; rows bigint;
BEGIN
  PERFORM set_config('search_path', 'of_' || method || ', am_computed', true);
  PERFORM set_config('default_table_access_method', method, true);
  IF statement ~* '^\s*(select|values|table)\M|\mreturning\M' THEN
    EXECUTE 'WITH t AS (' || statement || ') SELECT coalesce(string_agg(t::text, '' ''), ''nothing'') FROM t' INTO result;
  ELSE
    EXECUTE statement;
    GET DIAGNOSTICS rows = ROW_COUNT;
    result := 'ok ' || rows;
  END IF;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
  RETURN state || ': ' || replace(message, 'of_' || method, 'of') || coalesce(' / ' || nullif(detail, ''), '');
END $$;
CREATE FUNCTION am_computed.same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE heap text := am_computed.outcome('heap', statement); mot text := am_computed.outcome('mot', statement);
BEGIN
  RETURN CASE WHEN heap = mot THEN heap ELSE E'heap: ' || heap || E'\nMOT:  ' || mot END;
END $$;
SET search_path = am_computed;
\t on
\pset format unaligned

-- made before there are rows, and behind them
SELECT same($$CREATE TABLE person (id int PRIMARY KEY, name text, mail text, score int, gone bool DEFAULT false)$$);
SELECT same($$CREATE UNIQUE INDEX person_mail ON person (lower(mail) text_pattern_ops)$$);
SELECT same($$CREATE INDEX person_here ON person (score) WHERE NOT gone$$);
SELECT same($$INSERT INTO person SELECT i, 'n' || i, 'M' || i || '@x', i % 10, i % 4 = 0 FROM generate_series(1, 40) i$$);
SELECT same($$CREATE INDEX person_sum ON person ((score + id), id DESC)$$);
SELECT same($$CREATE UNIQUE INDEX person_name ON person (name) WHERE score > 3 AND name IS NOT NULL$$);
-- used
SET enable_seqscan = off;
SELECT same($$SELECT id FROM person WHERE lower(mail) = 'm7@x'$$);
SELECT same($$SELECT id FROM person WHERE lower(mail) LIKE 'm1%' ORDER BY id$$);
SELECT same($$SELECT id FROM person WHERE score BETWEEN 3 AND 4 AND NOT gone ORDER BY score, id$$);
SELECT same($$SELECT id FROM person WHERE score + id > 40 ORDER BY score + id, id DESC$$);
SELECT same($$SELECT max(score + id) FROM person$$);
SET search_path = of_mot, am_computed;
EXPLAIN (COSTS OFF) SELECT id FROM person WHERE lower(mail) = 'm7@x';
EXPLAIN (COSTS OFF) SELECT id FROM person WHERE score = 3 AND NOT gone;
EXPLAIN (COSTS OFF) SELECT id FROM person WHERE score + id > 40 ORDER BY score + id LIMIT 3;
SET search_path = am_computed;
-- unique
SELECT same($$INSERT INTO person VALUES (50, 'x', 'm7@X', 1)$$);
SELECT same($$INSERT INTO person VALUES (51, 'n9', 'new1', 2)$$);
SELECT same($$INSERT INTO person VALUES (52, 'n9', 'new2', 9)$$);
SELECT same($$UPDATE person SET score = 9 WHERE id = 51$$);
SELECT same($$UPDATE person SET mail = 'M8@X' WHERE id = 51$$);
SELECT same($$UPDATE person SET mail = upper(mail) WHERE id = 7$$);
SELECT same($$INSERT INTO person VALUES (53, NULL, NULL, 9), (54, NULL, NULL, 9)$$);
SELECT same($$CREATE UNIQUE INDEX person_twice ON person ((score - score))$$);
SELECT same($$CREATE UNIQUE INDEX person_twice ON person ((score - score)) WHERE gone$$);
-- a row comes into a partial index, and goes out of it
SELECT same($$SELECT id FROM person WHERE score = 4 AND NOT gone ORDER BY id$$);
SELECT same($$UPDATE person SET gone = NOT gone WHERE score = 4$$);
SELECT same($$SELECT id FROM person WHERE score = 4 AND NOT gone ORDER BY id$$);
SELECT same($$UPDATE person SET score = score + 1 WHERE id < 20 RETURNING id$$);
SELECT same($$SELECT id FROM person WHERE score = 5 AND NOT gone ORDER BY id$$);
SELECT same($$DELETE FROM person WHERE lower(mail) = 'm9@x' RETURNING id$$);
SELECT same($$INSERT INTO person VALUES (9, 'n9', 'M9@x', 5) RETURNING id$$);
-- ON CONFLICT
SELECT same($$INSERT INTO person VALUES (60, 'y', 'M7@x', 0) ON CONFLICT (lower(mail) text_pattern_ops) DO UPDATE SET score = person.score + 100 RETURNING id, score$$);
SELECT same($$INSERT INTO person VALUES (61, 'n8', 'z', 5) ON CONFLICT (name) WHERE score > 3 AND name IS NOT NULL DO UPDATE SET name = 'taken' RETURNING id, name$$);
SELECT same($$INSERT INTO person VALUES (62, 'n10', 'zz', 5) ON CONFLICT (name) DO NOTHING$$);
SELECT same($$INSERT INTO person VALUES (63, 'n6', 'zzz', 5) ON CONFLICT DO NOTHING$$);
SELECT same($$INSERT INTO person VALUES (64, 'n64', 'zzz', 5) ON CONFLICT (lower(mail)) DO NOTHING$$);
-- MERGE, COPY and triggers
SELECT same($$MERGE INTO person p USING (VALUES (7), (70)) v(id) ON p.id = v.id WHEN MATCHED THEN UPDATE SET mail = 'seven' WHEN NOT MATCHED THEN INSERT VALUES (v.id, 'm', 'seventy', 1)$$);
SELECT same($$SELECT id FROM person WHERE lower(mail) IN ('seven', 'seventy') ORDER BY id$$);
SET default_table_access_method = mot;
COPY of_mot.person FROM STDIN;
80	c80	C80@x	4	f
81	c81	C81@x	4	t
\.
COPY of_heap.person FROM STDIN;
80	c80	C80@x	4	f
81	c81	C81@x	4	t
\.
RESET default_table_access_method;
SELECT same($$SELECT id FROM person WHERE score = 4 AND NOT gone ORDER BY id$$);
SELECT same($$CREATE FUNCTION trim_mail() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.mail := trim(NEW.mail); RETURN NEW; END'$$);
SELECT same($$CREATE TRIGGER trimmed BEFORE INSERT OR UPDATE ON person FOR EACH ROW EXECUTE FUNCTION trim_mail()$$);
SELECT same($$INSERT INTO person VALUES (90, 'b', '  C80@X ', 0)$$);
SELECT same($$INSERT INTO person VALUES (90, 'b', '  C90@X ', 0)$$);
SELECT same($$SELECT id FROM person WHERE lower(mail) = 'c90@x'$$);
SELECT same($$DROP TRIGGER trimmed ON person$$);
SELECT mot.check('of_mot.person') IS NOT NULL;

-- savepoints, and an index that is rolled back
BEGIN;
SET LOCAL search_path = of_mot;
SAVEPOINT a;
UPDATE person SET mail = 'gone' WHERE id = 7;
CREATE INDEX person_late ON person (upper(name));
INSERT INTO person VALUES (100, 'late', 'late', 1);
ROLLBACK TO a;
INSERT INTO person VALUES (101, 'later', 'later', 1);
CREATE INDEX person_late ON person (upper(name));
INSERT INTO person VALUES (102, 'latest', 'latest', 1);
COMMIT;
SELECT id FROM of_mot.person WHERE upper(name) LIKE 'LATE%' ORDER BY upper(name);
SELECT id FROM of_mot.person WHERE lower(mail) = 'seven';
SELECT mot.check('of_mot.person') IS NOT NULL;

-- REINDEX, rewrites, other storages
INSERT INTO of_heap.person VALUES (101, 'later', 'later', 1), (102, 'latest', 'latest', 1);
REINDEX TABLE of_mot.person;
VACUUM FULL of_mot.person;
CLUSTER of_mot.person USING person_sum;
SELECT same($$ALTER TABLE person ADD COLUMN added int DEFAULT 3, DROP COLUMN gone$$);
SELECT same($$CREATE INDEX person_added ON person ((added * 2)) WHERE added IS NOT NULL$$);
SELECT same($$INSERT INTO person VALUES (110, 'x', 'x110', 1, 4)$$);
VACUUM FULL of_mot.person;
SELECT mot.check('of_mot.person') IS NOT NULL;
SELECT same($$SELECT id FROM person WHERE added * 2 = 8 AND added IS NOT NULL$$);
SELECT same($$SELECT count(*) FROM person WHERE added * 2 = 6 AND added IS NOT NULL$$);
SELECT same($$ALTER TABLE person ALTER score TYPE bigint$$);
SELECT same($$SELECT id FROM person WHERE score + id > 50 ORDER BY score + id, id DESC$$);
SELECT same($$ALTER TABLE person ALTER mail TYPE varchar(40)$$);
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relnamespace = 'of_mot'::regnamespace AND relname LIKE 'person%' ORDER BY 1;
SELECT same($$SELECT id FROM person WHERE lower(mail) = 'm12@x'$$);
ALTER TABLE of_mot.person SET ACCESS METHOD heap;
SELECT same($$SELECT id FROM person WHERE lower(mail) = 'm12@x'$$);
ALTER TABLE of_mot.person SET ACCESS METHOD mot;
SELECT same($$SELECT id FROM person WHERE lower(mail) = 'm12@x'$$);
SELECT same($$INSERT INTO person VALUES (120, 'x', 'M12@X', 1, 4)$$);
SELECT mot.check('of_mot.person') IS NOT NULL;
SELECT same($$TRUNCATE person$$);
SELECT same($$INSERT INTO person VALUES (120, 'x', 'M12@X', 1, 4)$$);
SELECT same($$SELECT id FROM person WHERE lower(mail) = 'm12@x'$$);

-- what a row shows has no keys behind it
SELECT same($$SELECT p, length(p::text), pg_column_size(p.*) FROM person p$$);
CREATE TABLE of_mot.copied AS SELECT * FROM of_mot.person;
SELECT same($$SELECT count(*) FROM person a JOIN person b USING (mail)$$);

-- functions that fail, and that write
SELECT same($$CREATE TABLE odd (a int, b int)$$);
SELECT same($$CREATE INDEX odd_quotient ON odd ((a / b))$$);
SELECT same($$INSERT INTO odd VALUES (6, 3), (1, 0)$$);
SELECT same($$INSERT INTO odd VALUES (6, 3), (8, NULL)$$);
SELECT same($$UPDATE odd SET b = 0 WHERE a = 6$$);
SELECT same($$SELECT a FROM odd WHERE a / b = 2$$);
SELECT same($$DROP INDEX odd_quotient$$);
SELECT same($$UPDATE odd SET b = 0 WHERE a = 6$$);
SELECT same($$CREATE INDEX odd_quotient ON odd ((a / b))$$);
SELECT same($$CREATE INDEX odd_quotient ON odd ((a / b)) WHERE b <> 0$$);
SELECT same($$CREATE TABLE log (a int)$$);
SELECT same($$CREATE INDEX log_a ON log ((a + 1))$$);
SELECT same($$CREATE FUNCTION writes(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (a); RETURN -a; END'$$);
SELECT same($$CREATE TABLE writer (a int PRIMARY KEY)$$);
SELECT same($$CREATE INDEX writer_a ON writer (writes(a))$$);
SELECT same($$INSERT INTO writer SELECT generate_series(1, 5)$$);
SELECT same($$CREATE FUNCTION calls(a int) RETURNS int VOLATILE LANGUAGE plpgsql AS 'BEGIN INSERT INTO log VALUES (a); UPDATE log SET a = log.a + 10 WHERE log.a = calls.a; RETURN -a; END'$$);
SELECT same($$CREATE OR REPLACE FUNCTION writes(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN calls(a); END'$$);
SELECT same($$INSERT INTO writer SELECT generate_series(1, 5)$$);
SELECT same($$UPDATE writer SET a = a + 100 WHERE a > 3$$);
SELECT same($$SELECT a FROM writer ORDER BY a$$);
SELECT same($$SELECT DISTINCT a FROM log WHERE a + 1 < 15 ORDER BY a$$);
-- a function that is replaced
SELECT same($$CREATE FUNCTION f(a int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT a % 3'$$);
SELECT same($$CREATE TABLE replaced (a int)$$);
SELECT same($$CREATE INDEX replaced_f ON replaced (f(a))$$);
SELECT same($$INSERT INTO replaced SELECT generate_series(1, 9)$$);
SELECT same($$CREATE OR REPLACE FUNCTION f(a int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN a % 2; END'$$);
\c -
SET client_min_messages = warning;
SET search_path = am_computed;
SET enable_seqscan = off;
DO $$ BEGIN PERFORM mot.check('of_mot.replaced'); EXCEPTION WHEN data_corrupted THEN RAISE WARNING '%', sqlerrm; END $$;
SELECT same($$REINDEX TABLE replaced$$);
SELECT same($$SELECT a FROM replaced WHERE f(a) = 1 ORDER BY a$$);
SELECT mot.check('of_mot.replaced') IS NOT NULL;
SELECT same($$DROP FUNCTION f CASCADE$$);
SELECT same($$INSERT INTO replaced VALUES (10)$$);
SELECT mot.check('of_mot.replaced') IS NOT NULL;

-- partitions, types, long keys
SELECT same($$CREATE TABLE parted (a int, b text) PARTITION BY RANGE (a)$$);
SELECT same($$CREATE TABLE part1 PARTITION OF parted FOR VALUES FROM (0) TO (10)$$);
SELECT same($$CREATE TABLE part2 PARTITION OF parted FOR VALUES FROM (10) TO (20)$$);
SELECT same($$INSERT INTO parted SELECT i, 'B' || i FROM generate_series(0, 19) i$$);
SELECT same($$CREATE INDEX ON parted (lower(b)) WHERE a % 2 = 0$$);
SELECT same($$UPDATE parted SET a = 11 WHERE a = 2$$);
SELECT same($$SELECT a FROM parted WHERE lower(b) < 'b15' AND a % 2 = 0 ORDER BY lower(b)$$);
SELECT same($$SELECT a FROM parted WHERE lower(b) = 'b12' AND a % 2 = 0$$);
SELECT same($$CREATE TABLE typed (a numeric, t timestamptz, u uuid, j jsonb)$$);
SELECT same($$CREATE INDEX ON typed ((a * 2), (j ->> 'k'), (t AT TIME ZONE 'UTC') DESC NULLS LAST)$$);
SELECT same($$INSERT INTO typed VALUES (1.50, '2020-01-01', NULL, '{"k": "v"}'), (2, NULL, NULL, NULL)$$);
SELECT same($$SELECT a FROM typed WHERE a * 2 = 3.0 AND j ->> 'k' = 'v'$$);
SELECT same($$SELECT a FROM typed WHERE a * 2 = 4 AND j ->> 'k' IS NULL$$);
SELECT same($$CREATE INDEX ON typed ((j -> 'k'))$$);
CREATE TABLE of_mot.long (a text);
CREATE INDEX ON of_mot.long ((a || a));
INSERT INTO of_mot.long VALUES (repeat('a', 1000));
INSERT INTO of_mot.long VALUES (repeat('a', 2000));
-- beside writers: where there are no rows, and where there are
SELECT same($$CREATE TABLE beside (a int, b text)$$);
CREATE INDEX CONCURRENTLY beside_a ON of_mot.beside ((a + 1)) WHERE a > 0;
CREATE INDEX CONCURRENTLY beside_a ON of_heap.beside ((a + 1)) WHERE a > 0;
SELECT same($$INSERT INTO beside SELECT g, 'Row ' || g FROM generate_series(-5, 5) g$$);
SELECT same($$SELECT a FROM beside WHERE a + 1 > 4 AND a > 0$$);
CREATE INDEX CONCURRENTLY beside_b ON of_mot.beside ((a - 1));
CREATE INDEX CONCURRENTLY beside_b ON of_heap.beside ((a - 1));
REINDEX INDEX CONCURRENTLY of_mot.beside_a;
CREATE UNIQUE INDEX CONCURRENTLY beside_u ON of_mot.beside (lower(b)) WHERE a > 0;
CREATE UNIQUE INDEX CONCURRENTLY beside_u ON of_heap.beside (lower(b)) WHERE a > 0;
CREATE FUNCTION indexes() RETURNS TABLE (name text, is_ready bool, is_valid bool) LANGUAGE sql AS $$
  SELECT i.relname::text, indisready, indisvalid FROM pg_index JOIN pg_class i ON i.oid = indexrelid WHERE indrelid = to_regclass('beside') ORDER BY 1 $$;
SELECT same($$SELECT * FROM indexes()$$);
SELECT same($$INSERT INTO beside VALUES (6, 'ROW 1')$$);
SELECT same($$INSERT INTO beside VALUES (-6, 'ROW 1')$$);
SELECT same($$INSERT INTO beside VALUES (7, 'ROW 1') ON CONFLICT (lower(b)) WHERE a > 0 DO UPDATE SET a = 11$$);
SELECT same($$SELECT a FROM beside WHERE a - 1 BETWEEN 0 AND 20 ORDER BY a - 1$$);
REINDEX TABLE CONCURRENTLY of_mot.beside;
REINDEX TABLE CONCURRENTLY of_heap.beside;
SELECT same($$SELECT * FROM indexes()$$);
SELECT same($$SELECT b FROM beside WHERE lower(b) > 'row' AND a > 0 ORDER BY lower(b) DESC$$);
-- rows have keys of the indexes that there are, however often these are rebuilt
REINDEX INDEX CONCURRENTLY of_mot.beside_u;
SELECT row_bytes AS once FROM mot.stat_tables WHERE relid = 'of_mot.beside'::regclass \gset
REINDEX INDEX CONCURRENTLY of_mot.beside_u;
REINDEX INDEX CONCURRENTLY of_mot.beside_u;
SELECT row_bytes - :once AS more FROM mot.stat_tables WHERE relid = 'of_mot.beside'::regclass;
-- what cannot be made is left invalid, and cured
SELECT same($$DROP INDEX beside_u$$);
SELECT same($$INSERT INTO beside VALUES (12, 'ROW 2')$$);
CREATE UNIQUE INDEX CONCURRENTLY beside_u ON of_mot.beside (lower(b)) WHERE a > 0;
CREATE UNIQUE INDEX CONCURRENTLY beside_u ON of_heap.beside (lower(b)) WHERE a > 0;
SELECT same($$SELECT * FROM indexes()$$);
CREATE INDEX CONCURRENTLY beside_d ON of_mot.beside ((10 / a));
CREATE INDEX CONCURRENTLY beside_d ON of_heap.beside ((10 / a));
SELECT same($$SELECT * FROM indexes()$$);
SELECT same($$INSERT INTO beside VALUES (13, 'ROW 2')$$);
SELECT same($$DELETE FROM beside WHERE a IN (0, 12, 13)$$);
REINDEX INDEX CONCURRENTLY of_mot.beside_u;
REINDEX INDEX CONCURRENTLY of_heap.beside_u;
SELECT same($$REINDEX INDEX beside_d$$);
SELECT same($$SELECT * FROM indexes()$$);
SELECT same($$SELECT a FROM beside WHERE 10 / a = 2$$);
SELECT same($$INSERT INTO beside VALUES (12, 'ROW 2')$$);
SELECT mot.check('of_mot.beside') IS NOT NULL;
-- rows of this transaction, and of its savepoints, beside rows of before
BEGIN;
SELECT same($$INSERT INTO beside VALUES (20, 'own'), (21, 'own, changed')$$);
SAVEPOINT s;
SELECT same($$UPDATE beside SET a = a + 10 WHERE a IN (1, 21)$$);
SELECT same($$CREATE INDEX beside_o ON beside ((a * 2))$$);
SELECT same($$SELECT a FROM beside WHERE a * 2 > 20 ORDER BY a * 2$$);
ROLLBACK TO s;
SELECT same($$CREATE INDEX beside_o ON beside ((a * 2)) WHERE a < 30$$);
SELECT same($$SELECT a FROM beside WHERE a * 2 > 20 AND a < 30 ORDER BY a * 2$$);
COMMIT;
SELECT same($$UPDATE beside SET a = a + 1 WHERE a * 2 > 20 AND a < 30$$);
SELECT same($$SELECT a FROM beside WHERE a * 2 > 20 AND a < 30 ORDER BY a * 2$$);
SELECT mot.check('of_mot.beside') IS NOT NULL;
-- tables that are not logged, and of this session
CREATE UNLOGGED TABLE of_mot.unlogged (a int, b int) USING mot;
CREATE TEMP TABLE of_session (a int, b int) USING mot;
INSERT INTO of_mot.unlogged SELECT g, -g FROM generate_series(1, 5) g;
INSERT INTO of_session SELECT g, -g FROM generate_series(1, 5) g;
CREATE INDEX CONCURRENTLY ON of_mot.unlogged ((a + b), a) WHERE a > 2;
CREATE INDEX CONCURRENTLY ON of_session ((a + b), a) WHERE a > 2;
SELECT a FROM of_mot.unlogged WHERE a + b = 0 AND a > 2;
SELECT a FROM of_session WHERE a + b = 0 AND a > 2;
SELECT mot.check('of_mot.unlogged') IS NOT NULL, mot.check('of_session') IS NOT NULL;
-- beside INCLUDE and EXCLUDE
SELECT same($$CREATE TABLE forms (a int, b text, c int)$$);
SELECT same($$CREATE UNIQUE INDEX forms_i ON forms (lower(b)) INCLUDE (c) WHERE c > 0$$);
SELECT same($$ALTER TABLE forms ADD CONSTRAINT forms_x EXCLUDE USING btree ((a % 10) WITH =) WHERE (c > 1)$$);
SELECT same($$INSERT INTO forms VALUES (1, 'A', 1), (11, 'B', 2)$$);
SELECT same($$INSERT INTO forms VALUES (2, 'a', 1)$$);
SELECT same($$INSERT INTO forms VALUES (2, 'a', 0), (21, 'C', 1)$$);
SELECT same($$INSERT INTO forms VALUES (31, 'D', 3)$$);
SELECT same($$UPDATE forms SET c = 2 WHERE a = 21$$);
SELECT same($$UPDATE forms SET c = 5 WHERE a = 2$$);
SELECT same($$INSERT INTO forms VALUES (41, 'E', 3) ON CONFLICT DO NOTHING$$);
SELECT same($$INSERT INTO forms VALUES (42, 'b', 1) ON CONFLICT (lower(b)) WHERE c > 0 DO UPDATE SET c = forms.c + 1 RETURNING *$$);
SELECT same($$SELECT * FROM forms WHERE a % 10 = 1 AND c > 1$$);
SELECT same($$SELECT c FROM forms WHERE lower(b) = 'b' AND c > 0$$);
SELECT mot.check('of_mot.forms') IS NOT NULL;
-- compiled statements
SET search_path = of_mot;
PREPARE by_mail(text) AS SELECT id FROM person WHERE lower(mail) = $1;
EXECUTE by_mail('m12@x');
PREPARE put(int, text) AS INSERT INTO person VALUES ($1, 'p', $2, 1, 4);
EXECUTE put(130, 'Prepared');
EXECUTE by_mail('prepared');
PREPARE change(int, text) AS UPDATE person SET mail = $2 WHERE id = $1;
EXECUTE change(130, 'Changed');
EXECUTE by_mail('prepared');
EXECUTE by_mail('changed');
DEALLOCATE ALL;
SELECT mot.check('of_mot.person') IS NOT NULL;
RESET enable_seqscan;
RESET search_path;
DROP SCHEMA am_computed, of_heap, of_mot CASCADE;
