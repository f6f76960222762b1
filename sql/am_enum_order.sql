-- The order of an enum's values: keys have oids, and scans put them in order, also when ALTER TYPE
-- has put values between others. Each statement on heap tables and on memory-optimized ones.
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
CREATE TYPE state AS ENUM ('new', 'paid', 'sent', 'back');
SELECT on_both('CREATE TABLE bill (id int PRIMARY KEY, s state, t state NOT NULL, n int)');
SELECT on_both($$INSERT INTO bill SELECT i, CASE WHEN i % 11 > 0 THEN (enum_range(NULL::state))[1 + i % 4] END, (enum_range(NULL::state))[1 + i / 7 % 4], i % 5 FROM generate_series(1, 2000) i$$);
SELECT on_both('CREATE INDEX ON bill (s, n)'), on_both('CREATE INDEX ON bill (t DESC, s NULLS FIRST)'), on_both('CREATE UNIQUE INDEX ON bill (n, t, id)'), on_both('CREATE INDEX ON bill (t) WHERE n = 1'), on_both('ANALYZE bill');
CREATE VIEW queries (query) AS VALUES
  ('SELECT s, n FROM bill ORDER BY s, n'), ('SELECT s, n FROM bill ORDER BY s DESC, n DESC'), ('SELECT s FROM bill ORDER BY s LIMIT 3'),
  ('SELECT s FROM bill WHERE s IS NOT NULL ORDER BY s DESC LIMIT 3'), ('SELECT t, s FROM bill ORDER BY t DESC, s NULLS FIRST'), ('SELECT t FROM bill ORDER BY t LIMIT 1'),
  ('SELECT n, t, id FROM bill WHERE n = 3 ORDER BY n, t, id'), ('SELECT n, t, id FROM bill ORDER BY n DESC, t DESC, id DESC'), ('SELECT t FROM bill WHERE n = 1 ORDER BY t'),
  ('SELECT min(s), max(s) FROM bill'), ('SELECT min(t) FROM bill WHERE n = 1'),
  ($$SELECT s, n FROM bill WHERE s > 'new' ORDER BY s, n$$), ($$SELECT s, n FROM bill WHERE s BETWEEN 'paid' AND 'sent' ORDER BY s, n LIMIT 7$$),
  ($$SELECT s FROM bill WHERE s IN ('back', 'new', 'sent') AND n = 2 ORDER BY s$$), ($$SELECT t, id FROM bill WHERE n = 2 AND t IN ('sent', 'new') ORDER BY t, id$$);
SELECT query, uses_order(query), md5(on_both(query)), on_both(query) ~ ', but mot: ' AS differs FROM queries;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
SELECT on_both('SELECT count(*), sum(x.id + y.id) FROM bill x JOIN bill y ON x.s = y.t WHERE y.n = 1'), on_both('SELECT s, count(*) FROM bill GROUP BY s'), on_both('SELECT DISTINCT s FROM bill ORDER BY s');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;
-- plans that are kept, and compiled ones, outlive new values between the others
SET mot.compiled_statements = always;
CREATE FUNCTION firsts(most int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found record; said text := '';
BEGIN
  FOR found IN SELECT s, n FROM bill WHERE s IS NOT NULL ORDER BY s, n LIMIT most LOOP said := said || found::text; END LOOP;
  FOR found IN SELECT t, id FROM bill WHERE n = 4 ORDER BY n DESC, t DESC, id DESC LIMIT most LOOP said := said || found::text; END LOOP;
  RETURN said;
END $$;
SELECT on_both('SELECT firsts(4)') FROM generate_series(1, 3);
ALTER TYPE state ADD VALUE 'draft' BEFORE 'new';
ALTER TYPE state ADD VALUE 'packed' AFTER 'paid';
ALTER TYPE state ADD VALUE 'lost';
ALTER TYPE state RENAME VALUE 'back' TO 'returned';
SELECT on_both($$INSERT INTO bill SELECT i, 'draft', 'packed', i % 5 FROM generate_series(2001, 2040) i$$), on_both($$INSERT INTO bill SELECT i, 'packed', 'draft', i % 5 FROM generate_series(2041, 2080) i$$),
  on_both($$UPDATE bill SET s = 'lost', t = 'draft' WHERE id % 100 = 3$$);
SELECT on_both('SELECT firsts(4)') FROM generate_series(1, 3);
SELECT query, md5(on_both(query)), on_both(query) ~ ', but mot: ' AS differs FROM queries;
-- so many between two that the catalog numbers all anew
DO $$ BEGIN FOR i IN 1..40 LOOP EXECUTE format('ALTER TYPE state ADD VALUE %L BEFORE %L', 'v' || i, CASE WHEN i = 1 THEN 'packed' ELSE 'v' || i - 1 END); END LOOP; END $$;
SELECT on_both($$INSERT INTO bill SELECT 3000 + i, e, 'v7', i % 5 FROM unnest(enum_range(NULL::state)) WITH ORDINALITY u (e, i)$$);
SELECT on_both('SELECT firsts(8)') FROM generate_series(1, 2);
SELECT query, md5(on_both(query)), on_both(query) ~ ', but mot: ' AS differs FROM queries;
SELECT on_both('SELECT DISTINCT s FROM bill ORDER BY s');
-- used in the transaction that has made the type
BEGIN;
CREATE TYPE size AS ENUM ('s', 'm', 'l');
SELECT on_both('CREATE TABLE shirt (s size PRIMARY KEY)');
SELECT on_both($$INSERT INTO shirt VALUES ('l'), ('s'), ('m')$$), on_both('SELECT s FROM shirt ORDER BY s'), on_both('SELECT s FROM shirt ORDER BY s DESC');
COMMIT;
SELECT on_both('SELECT s FROM shirt ORDER BY s'), on_both($$SELECT s FROM shirt WHERE s >= 'm' ORDER BY s$$);
-- a cursor that turns round
BEGIN;
SET LOCAL search_path = on_mot, ordered;
DECLARE c SCROLL CURSOR FOR SELECT t, s, id FROM bill WHERE n = 1 ORDER BY n, t, id;
FETCH 3 FROM c;
MOVE 100 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
COMMIT;
SELECT relname::text COLLATE "C", (mot.check(oid)).rows FROM pg_class WHERE relnamespace = 'on_mot'::regnamespace AND relkind = 'r' ORDER BY 1;
DROP SCHEMA on_heap, on_mot, ordered CASCADE;
