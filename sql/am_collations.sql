-- Texts in the order of their collation: ICU's by sort keys, the C library's by groups of texts
-- that a first look calls equal. Each statement on heap tables and on memory-optimized ones.
\getenv top PG_ABS_SRCDIR
\cd :top
\set helpers 'sql/forms/on_both.sql'
\set started :ECHO
\set ECHO none
\i :helpers
\set ECHO :started
SET jit = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE COLLATION en (provider = libc, locale = 'en_US.UTF-8');
CREATE COLLATION cs (provider = libc, locale = 'cs_CZ.UTF-8');
CREATE COLLATION plain (provider = libc, locale = 'C.UTF-8');
CREATE COLLATION icu (provider = icu, locale = 'en');
CREATE COLLATION numbers (provider = icu, locale = 'de@colNumeric=yes;colCaseFirst=upper');
CREATE VIEW collations (name) AS VALUES ('en'), ('cs'), ('plain'), ('icu'), ('numbers');
-- few letters, with and without accents, blanks, punctuation, and what a first look ignores
CREATE TABLE words AS
  SELECT row_number() OVER (ORDER BY a COLLATE "C", b COLLATE "C", c COLLATE "C") AS id, a || b || c AS word
  FROM unnest(ARRAY['', 'a', 'A', 'ch', 'Ch', 'é', 'e', 'coop', 'co-op', '10', '9', 'č', 'z']) a,
       unnest(ARRAY['', 'a', 'Á', ' ', '-', E'\u0301', E'\u200d', E'\t', 'H']) b,
       unnest(ARRAY['', 'x', E'\u0308', '2']) c;
SELECT name, on_both(format($c$
  CREATE TABLE t_%1$s (id int PRIMARY KEY, w text COLLATE %1$s, v varchar(40) COLLATE %1$s NOT NULL, c char(12) COLLATE %1$s, n int)$c$, name)),
  on_both(format($c$INSERT INTO t_%1$s SELECT id, nullif(word, ''), word, word, id %% 3 FROM words$c$, name)) FROM collations;
SELECT name, string_agg(on_both(format(statement, name)), ' ') FROM collations, (VALUES
  ('CREATE INDEX ON t_%1$s (w, n)'), ('CREATE INDEX ON t_%1$s (v DESC, w NULLS FIRST)'),
  ('CREATE UNIQUE INDEX ON t_%1$s (n, c, v, id)'), ('CREATE INDEX ON t_%1$s (lower(w))'), ('ANALYZE t_%1$s')) s(statement) GROUP BY name ORDER BY name COLLATE "C";

-- orders, both ways, and how far they go
SELECT name, query, uses_order(format(query, name)), on_both(format(query, name)) !~ 'but mot' AS is_same
FROM collations, (VALUES
  ('SELECT id, w FROM t_%s ORDER BY w, n'), ('SELECT id, w FROM t_%s ORDER BY w DESC, n DESC'),
  ('SELECT w FROM t_%s ORDER BY w LIMIT 20'), ('SELECT id FROM t_%s ORDER BY v DESC, w NULLS FIRST'),
  ('SELECT v FROM t_%s ORDER BY v LIMIT 7'), ('SELECT c, v FROM t_%s WHERE n = 1 ORDER BY n, c, v'),
  ('SELECT n, c FROM t_%s ORDER BY n, c'), ('SELECT lower(w) FROM t_%s ORDER BY lower(w) LIMIT 50')) q(query);
-- ranges, and what stands at their ends
SELECT name, query, count(*), sum((on_both(format(query, name, word)) !~ 'but mot')::int), bool_and(uses_order(format(query, name, word))) AS uses_order
FROM collations, (VALUES
  ('SELECT id FROM t_%s WHERE w > %L ORDER BY w, n'), ('SELECT id FROM t_%s WHERE w >= %L ORDER BY w DESC, n DESC'),
  ('SELECT id FROM t_%s WHERE w < %L ORDER BY w, n'), ('SELECT count(*) FROM t_%s WHERE w <= %L'),
  ('SELECT count(*) FROM t_%1$s WHERE v BETWEEN ''a'' AND %2$L'), ('SELECT min(w) FROM t_%1$s WHERE w > %2$L'),
  ('SELECT max(w) FROM t_%1$s WHERE w < %2$L'), ('SELECT id FROM t_%1$s WHERE w = %2$L ORDER BY n'),
  ('SELECT count(*) FROM t_%1$s WHERE lower(w) >= lower(%2$L)'),
  ('SELECT id FROM t_%1$s WHERE n = 2 AND c > %2$L ORDER BY c, v')) q(query),
  (SELECT DISTINCT word FROM words WHERE id % 7 = 0) ends
GROUP BY name, query ORDER BY name COLLATE "C", query COLLATE "C";
-- lists in the order of the collation
SELECT name, on_both(format($c$SELECT w FROM t_%s WHERE w IN ('coop', 'co-op', 'A', 'a', 'aÁ', 'chH', 'Ch', 'ch', '10', '9') ORDER BY w$c$, name)) FROM collations;
-- merge joins, distinct values, and groups
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
SELECT name, on_both(format(query, name)) FROM collations, (VALUES
  ('SELECT count(*), sum(x.id) FROM t_%1$s x JOIN t_%1$s y ON x.w = y.v'),
  ('SELECT count(*) FROM (SELECT DISTINCT w FROM t_%1$s) d'),
  ('SELECT count(*) FROM (SELECT w, count(*) FROM t_%1$s GROUP BY w) d')) q(query);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;

-- many rows of few texts that a first look calls equal
SELECT on_both('CREATE TABLE many (id int PRIMARY KEY, s text COLLATE en, t text COLLATE en)');
SELECT on_both($$INSERT INTO many SELECT i, (ARRAY['active', 'Active', 'ACTIVE', 'áctive', NULL, 'other'])[1 + i % 6], (ARRAY['b', 'B', 'c'])[1 + i / 6 % 3] FROM generate_series(1, 6000) i$$);
SELECT on_both('CREATE INDEX ON many (s, t, id)'), on_both('CREATE INDEX ON many (s DESC NULLS LAST, id)'), on_both('ANALYZE many');
SELECT uses_order(query), on_both(query) FROM (VALUES
  ('SELECT md5(string_agg(x::text, '','')) FROM (SELECT s, t, id FROM many ORDER BY s, t, id) x'),
  ('SELECT md5(string_agg(x::text, '','')) FROM (SELECT s, t, id FROM many ORDER BY s DESC, t DESC, id DESC) x'),
  ('SELECT md5(string_agg(x::text, '','')) FROM (SELECT s, id FROM many ORDER BY s DESC NULLS LAST, id) x'),
  ('SELECT md5(string_agg(x::text, '','')) FROM (SELECT s, id FROM many WHERE s > ''ACTIVE'' ORDER BY s DESC NULLS LAST, id) x'),
  ('SELECT s, id FROM many ORDER BY s, t, id LIMIT 3'),
  ('SELECT s, id FROM many ORDER BY s DESC NULLS LAST, id LIMIT 3'),
  ('SELECT s, t FROM many WHERE s = ''Active'' ORDER BY t, id LIMIT 2')) q(query);
-- a cursor that turns round inside a group, before and behind a savepoint
BEGIN;
SET LOCAL search_path = on_mot, ordered;
DECLARE c SCROLL CURSOR FOR SELECT s, t, id FROM many ORDER BY s, t, id;
MOVE 999 FROM c;
FETCH 3 FROM c;
FETCH BACKWARD 3 FROM c;
SAVEPOINT one;
DELETE FROM many WHERE id % 2 = 0;
FETCH 3 FROM c;
ROLLBACK TO one;
FETCH 3 FROM c;
MOVE ABSOLUTE 5999 IN c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;

-- ICU's keys contradict its comparison where accents count backward or punctuation is shifted: such
-- an index gives no order
CREATE COLLATION backward (provider = icu, locale = 'fr-CA');
CREATE COLLATION thai (provider = icu, locale = 'th');
SELECT on_both('CREATE TABLE odd (f text COLLATE backward, t text COLLATE thai)'), on_both($$INSERT INTO odd VALUES (E'c\u0327', E'-\u1100\u200dA'), (E'c\u0327\u0001\u0300', E'-\u0001\u0301\u1100\u200dA')$$);
CREATE INDEX ON on_mot.odd (f);
CREATE INDEX ON on_mot.odd (t);
SELECT on_both(query) !~ 'but mot' FROM (VALUES ('SELECT f FROM odd ORDER BY f'), ('SELECT min(f), max(t) FROM odd'), ($$SELECT count(*) FROM odd WHERE f >= E'c\u0327\u0001\u0300'$$), ('SELECT t FROM odd ORDER BY t DESC'), ($$SELECT count(*) FROM odd WHERE t = E'-\u1100\u200dA'$$)) q(query);
-- a scan that is older than a savepoint goes on behind its end: rows are judged when they are asked
-- for
SELECT on_both('CREATE TABLE held_back (id int PRIMARY KEY, w text COLLATE en)'), on_both('CREATE INDEX ON held_back (w)'), on_both($$INSERT INTO held_back VALUES (1, 'foo'), (2, 'Foo'), (3, 'FOO'), (4, 'fOo'), (9, 'zzz')$$);
SET check_function_bodies = off;
CREATE FUNCTION seen(int) RETURNS SETOF text VOLATILE LANGUAGE sql AS $$ SELECT $1 || ':' || id || w FROM held_back ORDER BY w $$;
\set scroll 'BEGIN; DECLARE c CURSOR FOR SELECT seen(g) FROM generate_series(1, 2) g; FETCH 5 FROM c; SAVEPOINT s; INSERT INTO held_back VALUES (100, $$fOO$$), (101, $$FoO$$), (102, $$foO$$), (103, $$FOo$$); UPDATE held_back SET w = $$FOÓ$$ WHERE id = 3; UPDATE held_back SET w = $$zZz$$ WHERE id = 9; FETCH 1 FROM c; ROLLBACK TO s; RELEASE s; INSERT INTO held_back SELECT i, $$x$$ || i FROM generate_series(1000, 4000) i; FETCH ALL FROM c; ROLLBACK;'
SET search_path = on_heap, ordered;
:scroll
SET search_path = on_mot, ordered;
:scroll
RESET search_path;
SET search_path = ordered;

-- compiled statements: loops, changes and row locks over ranges, and what comes again after a large
-- group
SET mot.compiled_statements = always;
CREATE FUNCTION compiled(start text) RETURNS text LANGUAGE plpgsql SET jit = off AS $$
DECLARE said text := ''; found record; changed int;
BEGIN
  FOR time IN 1..3 LOOP
    FOR found IN SELECT s, t, id FROM many WHERE s > start ORDER BY s, t, id LIMIT 40 * time LOOP said := said || found::text; END LOOP;
    FOR found IN SELECT s, id FROM many WHERE s <= start ORDER BY s DESC, id DESC LIMIT 3 LOOP said := said || found::text; END LOOP;
    FOR found IN SELECT t, id FROM many WHERE s = start AND t > 'b' ORDER BY t, id LIMIT time LOOP said := said || found::text; END LOOP;
    SELECT w INTO found FROM t_en WHERE w > start ORDER BY w, n LIMIT 1;
    said := said || found::text;
    UPDATE many SET t = upper(t) WHERE s >= start AND t < 'c';
    GET DIAGNOSTICS changed = ROW_COUNT;
    said := said || changed;
    DELETE FROM many WHERE s > start AND id < 100 * time;
    GET DIAGNOSTICS changed = ROW_COUNT;
    said := said || changed || E'\n';
  END LOOP;
  RETURN md5(said);
END $$;
SELECT on_both(format('SELECT compiled(%L)', start)) FROM unnest(ARRAY['', 'active', 'Active', 'b', 'zz']) start;
RESET mot.compiled_statements;

-- changes: the key of a text that only its case, or an accent, changes
SELECT name, on_both(format('UPDATE t_%s SET w = upper(w), v = initcap(v) WHERE n = 0', name)) FROM collations;
SELECT name, on_both(format('DELETE FROM t_%s WHERE w < ''b'' AND n = 1', name)) FROM collations;
SELECT name, on_both(format(query, name)) !~ 'but mot' AS is_same FROM collations, (VALUES
  ('SELECT id, w FROM t_%s ORDER BY w, n, id'), ('SELECT id FROM t_%s ORDER BY v DESC, w NULLS FIRST, id'), ('SELECT c, v FROM t_%s WHERE n = 1 ORDER BY n, c, v')) q(query);
-- unique keys are equal by their bytes
SELECT on_both('CREATE TABLE u (w text COLLATE en PRIMARY KEY)'), on_both($$INSERT INTO u VALUES ('a'), ('A'), ('á')$$),
  on_both($$INSERT INTO u VALUES ('b'), ('A')$$), on_both($$INSERT INTO u VALUES ('A') ON CONFLICT DO NOTHING$$), on_both('SELECT w FROM u ORDER BY w');
-- foreign keys, arrays, ranges, names
SELECT on_both('CREATE TABLE r (w text COLLATE en REFERENCES u)'), on_both($$INSERT INTO r VALUES ('á'), ('a')$$), on_both($$INSERT INTO r VALUES ('Á')$$), on_both($$DELETE FROM u WHERE w = 'a'$$);
CREATE TYPE spans AS RANGE (subtype = text, collation = icu);
SELECT on_both('CREATE TABLE held (id int, l text[] COLLATE icu, e text[] COLLATE en, s spans, n name COLLATE icu)'),
  on_both($$INSERT INTO held SELECT id, ARRAY[word, 'x'], ARRAY[word], spans(word, NULL), word FROM words$$),
  on_both('CREATE INDEX ON held (l)'), on_both('CREATE INDEX ON held (e)'), on_both('CREATE INDEX ON held (s)'), on_both('CREATE INDEX ON held (n)'), on_both('ANALYZE held');
SELECT uses_order(query), on_both(query) !~ 'but mot' AS is_same FROM (VALUES ('SELECT l FROM held ORDER BY l'), ('SELECT count(*) FROM held WHERE e = ARRAY[''a'']'),
  ('SELECT s FROM held ORDER BY s DESC'), ('SELECT n FROM held ORDER BY n'), ('SELECT e FROM held ORDER BY e')) q(query);
-- patterns are found where the operator class is made for them, as on heap
SELECT on_both('CREATE INDEX ON u (w text_pattern_ops)'), on_both($$SELECT w FROM u WHERE w LIKE 'á%'$$);
-- nondeterministic ones: texts that it calls equal are one key
CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION accents (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
CREATE TYPE loose AS RANGE (subtype = text, collation = insensitive);
SELECT statement, on_both(statement) FROM (VALUES
  ('CREATE TABLE people (name text COLLATE insensitive PRIMARY KEY, city varchar COLLATE accents, n int, l text[] COLLATE insensitive, r loose, c char(8) COLLATE insensitive)'),
  ('CREATE INDEX ON people (city, n DESC)'), ('CREATE INDEX ON people (l)'), ('CREATE INDEX ON people (r)'), ('CREATE UNIQUE INDEX ON people (c)'),
  ('CREATE UNIQUE INDEX ON people ((name || n) COLLATE insensitive)'),
  ($$INSERT INTO people SELECT w, w, i, ARRAY[w, 'X'], loose(w, w, '[]'), w FROM unnest(ARRAY['Ann', 'bob', 'Éva', 'Zoë', 'eve', 'BOBBY']) WITH ORDINALITY u (w, i)$$),
  ($$INSERT INTO people (name) VALUES ('ANN')$$), ($$INSERT INTO people (name, c) VALUES ('other', 'ANN  ')$$),
  ($$INSERT INTO people VALUES ('BOB', 'Bób', 7) ON CONFLICT (name) DO UPDATE SET n = excluded.n, city = excluded.city RETURNING name, n$$),
  ($$SELECT name FROM people WHERE name = 'éva'$$), ($$SELECT name FROM people WHERE name = 'Eva'$$), ($$SELECT name FROM people WHERE city IN ('EVA', 'zoe', 'bob') ORDER BY city$$),
  ($$SELECT name FROM people WHERE name >= 'BOB' ORDER BY name$$), ('SELECT name FROM people ORDER BY city DESC, n'), ($$SELECT n FROM people WHERE l = ARRAY['ann', 'x']$$),
  ($$SELECT n FROM people WHERE r = loose('ZOË', 'zoë', '[]')$$), ($$SELECT n FROM people WHERE c = 'bObBy'$$), ($$SELECT n FROM people WHERE (name || n) COLLATE insensitive = 'BOBBY6'$$),
  ('UPDATE people SET name = upper(name), c = lower(c)'), ($$UPDATE people SET name = 'eVE' WHERE n = 1$$), ('SELECT name, c FROM people ORDER BY name'),
  ('CREATE TABLE visits (who text COLLATE insensitive REFERENCES people ON UPDATE CASCADE ON DELETE CASCADE)'), ($$INSERT INTO visits VALUES ('ann'), ('Ann'), ('bob')$$), ($$INSERT INTO visits VALUES ('carl')$$),
  ($$UPDATE people SET name = 'Anna' WHERE name = 'ann'$$), ('SELECT who FROM visits ORDER BY who'), ($$DELETE FROM people WHERE name = 'bOB'$$), ('SELECT count(*) FROM visits'),
  ('SELECT count(*) FROM visits v JOIN people p ON v.who = p.name'), ('SELECT DISTINCT lower(who) FROM visits')) s(statement);
-- long texts
SELECT on_both($$INSERT INTO u VALUES (repeat('Ab', 1300))$$), on_both('SELECT length(w) FROM u ORDER BY w COLLATE "C" DESC LIMIT 5');
SELECT left(answer($$INSERT INTO on_mot.u SELECT string_agg(md5(i::text), '') FROM generate_series(1, 600) i$$), 80);
SELECT relname::text COLLATE "C", (mot.check(oid)).rows FROM pg_class WHERE relnamespace = 'on_mot'::regnamespace AND relkind = 'r' ORDER BY 1;
DROP SCHEMA on_heap, on_mot, ordered CASCADE;
