-- Keys of enums, arrays and ranges: each statement on heap tables and on memory-optimized ones,
-- which give the same.
\getenv top PG_ABS_SRCDIR
\cd :top
\set helpers 'sql/forms/on_both.sql'
\set started :ECHO
\set ECHO none
\i :helpers
\set ECHO :started
-- without what 18 says of nodes that settings discourage, and what versions before it say of
-- subqueries
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line !~ 'Disabled' THEN RETURN NEXT replace(line, ' (returns $0)', ''); END IF;
  END LOOP;
END $$;
CREATE VIEW methods AS SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relnamespace = 'on_mot'::regnamespace ORDER BY 1;

-- enums, whose oids are not in order once a value was put between others
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN known_mood AS mood NOT NULL;
CREATE TABLE statements (n serial, s text);
INSERT INTO statements (s) VALUES
  ('CREATE TABLE person (id int PRIMARY KEY, m mood, k known_mood, n int, UNIQUE (m, n))'),
  ('CREATE INDEX person_k ON person (k DESC, id)'),
  ('INSERT INTO person SELECT i, (ARRAY[''happy'', ''sad'', NULL, ''ok'']::mood[])[i % 4 + 1], (ARRAY[''ok'', ''happy'', ''sad'']::mood[])[i % 3 + 1], i % 10 FROM generate_series(1, 20) i'),
  ('INSERT INTO person VALUES (99, ''sad'', ''ok'', 1)'),
  ('INSERT INTO person VALUES (98, ''sad'', ''ok'', 1) ON CONFLICT (m, n) DO UPDATE SET n = person.n + 100 RETURNING id, m, n'),
  ('INSERT INTO person VALUES (97, ''sad'', ''ok'', 9) ON CONFLICT DO NOTHING'),
  ('SELECT id FROM person WHERE m = ''happy'' ORDER BY id'),
  ('SELECT id FROM person WHERE k::mood = ''ok'' AND id < 10 ORDER BY id'),
  ('SELECT count(*) FROM person WHERE m IN (''happy'', ''ok'')'),
  ('SELECT count(*) FROM person WHERE m = ANY (''{happy,sad,NULL}''::mood[]) AND n IN (1, 3, 5)'),
  ('SELECT count(*) FROM person WHERE m < ''happy'''),
  ('SELECT count(*) FROM person WHERE m >= ''ok'' AND n > 4'),
  ('SELECT count(*) FROM person WHERE m IS NULL'),
  ('SELECT min(m), max(m), min(k::mood), max(k::mood) FROM person'),
  ('SELECT DISTINCT m FROM person ORDER BY m'),
  ('SELECT m, count(*), min(n) FROM person GROUP BY m ORDER BY m DESC NULLS LAST'),
  ('SELECT m, n, id FROM person ORDER BY m, n, id'),
  ('SELECT k, id FROM person ORDER BY k DESC, id LIMIT 5'),
  ('SELECT count(*), sum(a.id * b.id) FROM person a JOIN person b ON a.m = b.m'),
  ('SELECT count(*), sum(a.id * b.id) FROM person a JOIN person b ON a.k::mood = b.k::mood AND a.id = b.id'),
  ('UPDATE person SET m = ''ok'', n = id + 1000 WHERE m = ''happy'' AND n < 5'),
  ('DELETE FROM person WHERE k::mood = ''sad'' AND m = ''sad'''),
  ('MERGE INTO person p USING (VALUES (''ok''::mood, 1004), (''sad'', 555)) v (m, n) ON p.m = v.m AND p.n = v.n WHEN MATCHED THEN UPDATE SET k = ''happy'' WHEN NOT MATCHED THEN INSERT VALUES (v.n, v.m, ''ok'', v.n)'),
  ('SELECT p FROM person p ORDER BY id');
SELECT s AS statement, on_both(s) AS answer FROM statements ORDER BY n;
-- a value between two others, and plans made before
SET plan_cache_mode = force_generic_plan;
SET enable_sort = off;
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
PREPARE ordered AS SELECT string_agg(m || n::text, ' ') FROM (SELECT m, n FROM on_mot.person WHERE m IS NOT NULL ORDER BY m, n) p;
PREPARE ordered_heap AS SELECT string_agg(m || n::text, ' ') FROM (SELECT m, n FROM on_heap.person WHERE m IS NOT NULL ORDER BY m, n) p;
PREPARE ends AS SELECT min(m), max(m), min(k::mood), max(k::mood) FROM on_mot.person;
PREPARE below (mood) AS SELECT count(*), count(DISTINCT m) FROM on_mot.person WHERE m < $1;
PREPARE joined AS SELECT count(*) FROM on_mot.person a JOIN on_mot.person b ON a.m = b.k::mood;
PREPARE joined_heap AS SELECT count(*) FROM on_heap.person a JOIN on_heap.person b ON a.m = b.k::mood;
PREPARE grouped AS SELECT k, count(*) FROM on_mot.person GROUP BY k ORDER BY k DESC;
CREATE VIEW steps AS SELECT unnest(ARRAY['ordered', 'ordered_heap', 'ends', 'below (''ok'')', 'joined', 'joined_heap', 'grouped']) AS step;
SELECT step, answer('EXECUTE ' || step) FROM steps;
ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok';
ALTER TYPE mood ADD VALUE 'worst' BEFORE 'sad';
SELECT on_both('INSERT INTO person VALUES (201, ''meh'', ''worst'', 1), (202, ''worst'', ''meh'', 2), (203, ''meh'', ''meh'', 2)');
SELECT step, answer('EXECUTE ' || step) FROM steps;
ALTER TYPE mood RENAME VALUE 'sad' TO 'blue';
SELECT step, answer('EXECUTE ' || step) FROM steps;
DEALLOCATE ALL;
RESET enable_sort;
TRUNCATE statements RESTART IDENTITY;
INSERT INTO statements (s) VALUES
  ('SELECT id, m FROM person WHERE m = ''blue'' ORDER BY id'),
  ('SELECT id, m FROM person WHERE m < ''ok'' ORDER BY m, n'),
  ('SELECT id, k FROM person WHERE k::mood BETWEEN ''worst'' AND ''meh'' ORDER BY k, id'),
  ('SELECT count(*) FROM person a JOIN person b ON a.m = b.k::mood'),
  ('SELECT n FROM person WHERE m = ''ok'' ORDER BY n DESC LIMIT 3'),
  ('SELECT n FROM person WHERE m = ''ok'' AND n > 5 ORDER BY m, n'),
  ('SELECT max(n) FROM person WHERE m = ''meh'''),
  ('SELECT DISTINCT k FROM person ORDER BY k'),
  ('SELECT k, count(*) FROM person GROUP BY k ORDER BY k');
SELECT s AS statement, on_both(s) AS answer FROM statements ORDER BY n;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;
-- equality and order go through the index
SET search_path = on_mot, ordered;
SELECT plan('SELECT id FROM person WHERE m = ''ok'' AND n = 3');
SELECT plan('SELECT id FROM person WHERE m IN (''ok'', ''meh'')');
SELECT plan('SELECT m FROM person ORDER BY m');
SELECT plan('SELECT max(m) FROM person');
SELECT plan('SELECT n FROM person WHERE m = ''ok'' ORDER BY n DESC LIMIT 3');
SELECT plan('SELECT n FROM person WHERE m = ''ok'' AND n > 5 ORDER BY m, n');
SELECT plan('SELECT max(n) FROM person WHERE m = ''meh''');
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT plan('SELECT count(*) FROM person a JOIN person b ON a.m = b.k::mood');
SELECT plan('SELECT count(*) FROM person a JOIN on_heap.person b ON a.m = b.m');
SELECT count(*) FROM person a JOIN on_heap.person b ON a.m = b.m;
SELECT count(*) FROM on_heap.person a JOIN on_heap.person b ON a.m = b.m;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;
SET search_path = ordered;

-- arrays and ranges
CREATE COLLATION german (provider = icu, locale = 'de');
CREATE DOMAIN tags AS text[] CHECK (cardinality(VALUE) < 5);
CREATE TYPE mood_range AS RANGE (subtype = mood);
TRUNCATE statements RESTART IDENTITY;
INSERT INTO statements (s) VALUES
  ('CREATE TABLE doc (id int PRIMARY KEY, a int[] UNIQUE, t tags COLLATE "C", u text[] COLLATE german, r int4range UNIQUE, m nummultirange, e mood[], x mood_range, UNIQUE (a, id))'),
  ('CREATE INDEX doc_t ON doc (t, id DESC)'),
  ('CREATE INDEX doc_u ON doc (u)'),
  ('CREATE INDEX doc_m ON doc (m DESC)'),
  ('CREATE INDEX doc_e ON doc (e)'),
  ('CREATE INDEX doc_x ON doc (x)'),
  ('INSERT INTO doc SELECT i, ARRAY[i % 5, i], ARRAY[chr(97 + i % 3), i::text], ARRAY[chr(65 + i % 40)], int4range(i % 7, 100 + i), nummultirange(numrange(i % 4, 10), numrange(20, i + 30)), ARRAY[''ok'', ''meh'']::mood[], mood_range(''worst'', CASE WHEN i % 2 = 0 THEN ''ok'' ELSE ''meh'' END::mood) FROM generate_series(1, 30) i'),
  ('INSERT INTO doc (id, a, r, t) VALUES (40, ''{}'', ''empty'', ''{}''), (41, ''{NULL}'', NULL, NULL), (42, ''[0:1]={1,6}'', ''(,)'', ''{{a,b},{c,d}}'')'),
  ('INSERT INTO doc (id, a) VALUES (50, ''{1,6}'')'),
  ('INSERT INTO doc (id, r) VALUES (50, ''[1,108)'')'),
  ('INSERT INTO doc (id, t) VALUES (50, ''{a,b,c,d,e}'')'),
  ('INSERT INTO doc (id, a) VALUES (50, ''{1,6}'') ON CONFLICT (a) DO UPDATE SET t = ''{conflict}'' RETURNING id, t'),
  ('INSERT INTO doc (id, r) VALUES (50, ''[1,107]'') ON CONFLICT (r) DO NOTHING'),
  ('SELECT id FROM doc WHERE a = ''{1,6}'''),
  ('SELECT id FROM doc WHERE a > ''{3}'' AND a < ''{4,10}'' ORDER BY a'),
  ('SELECT id FROM doc WHERE a <= ''{}'' OR a >= ''{4,20}'' ORDER BY id'),
  ('SELECT a FROM doc ORDER BY a DESC LIMIT 6'),
  ('SELECT min(a), max(a) FROM doc'),
  ('SELECT id FROM doc WHERE t = ''{b,4}'''),
  ('SELECT id FROM doc WHERE t BETWEEN ''{b}'' AND ''{b,2}'' ORDER BY t, id DESC'),
  ('SELECT t FROM doc ORDER BY t, id DESC LIMIT 5'),
  ('SELECT id FROM doc WHERE u = ''{B}'' ORDER BY id'),
  ('SELECT u FROM doc ORDER BY u LIMIT 5'),
  ('SELECT count(*) FROM doc WHERE u < ''{b}'''),
  ('SELECT id FROM doc WHERE r = ''[3,103)'''),
  ('SELECT id FROM doc WHERE r > ''[5,)'' ORDER BY r'),
  ('SELECT r FROM doc ORDER BY r NULLS FIRST LIMIT 4'),
  ('SELECT id, m FROM doc WHERE m = ''{[1,10),[20,35.00)}'''),
  ('SELECT id FROM doc WHERE m >= ''{[3,10),[20,50)}'' ORDER BY m DESC, id'),
  ('SELECT count(*) FROM doc WHERE e = ''{ok,meh}'''),
  ('SELECT count(*) FROM doc WHERE e < ''{happy}'''),
  ('SELECT id FROM doc WHERE x = ''[worst,ok)'' ORDER BY id LIMIT 3'),
  ('SELECT x, count(*) FROM doc GROUP BY x ORDER BY x'),
  ('SELECT count(*) FROM doc WHERE x < ''[worst,ok)'''),
  ('SELECT count(*), sum(a.id * b.id) FROM doc a JOIN doc b ON a.x = b.x JOIN doc c ON a.a = c.a'),
  ('UPDATE doc SET a = a || 1000, r = r * ''[5,)'' WHERE a > ''{4}'' AND r IS NOT NULL'),
  ('DELETE FROM doc WHERE a IN (''{1,6}'', ''{2,7}'', ''{2}'')'),
  ('MERGE INTO doc d USING (VALUES (''{3,8}''::int[]), (''{77}'')) v (a) ON d.a = v.a WHEN MATCHED THEN UPDATE SET t = ''{merged}'' WHEN NOT MATCHED THEN INSERT (id, a) VALUES (77, v.a)'),
  ('SELECT id, a, t, r FROM doc ORDER BY id');
SELECT s AS statement, on_both(s) AS answer FROM statements ORDER BY n;
SET search_path = on_mot, ordered;
SET enable_seqscan = off;
SELECT plan('SELECT a FROM doc WHERE a > ''{3}'' ORDER BY a');
SELECT plan('SELECT t FROM doc ORDER BY t');
SELECT plan('SELECT u FROM doc WHERE u = ''{B}'' ORDER BY u');
SELECT plan('SELECT r FROM doc ORDER BY r DESC');
SELECT plan('SELECT e FROM doc ORDER BY e');
SELECT plan('SELECT x FROM doc ORDER BY x');
RESET enable_seqscan;
SET search_path = ordered;

-- compiled statements
SET mot.compiled_statements = always;
CREATE FUNCTION compiled(steps int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE one mood; several int[]; span int4range; many bigint; said text := '';
BEGIN
  FOR i IN 1..steps LOOP
    one := (enum_range(NULL::mood))[i % 5 + 1];
    several := ARRAY[i % 5, i];
    INSERT INTO keyed VALUES (one, several, int4range(i, i + 10), i) ON CONFLICT (m, a) DO UPDATE SET n = keyed.n + 1000;
    SELECT count(*) INTO many FROM keyed WHERE m = one AND a = several;
    said := said || ' ' || many;
    UPDATE keyed SET n = n + 1 WHERE m = one AND a = several;
    SELECT n INTO many FROM keyed WHERE r = int4range(i, i + 10);
    said := said || ':' || many;
    SELECT count(*) INTO many FROM keyed WHERE m = ANY (ARRAY[one, 'ok']) AND a = several;
    said := said || ':' || many;
    SELECT count(*) INTO many FROM keyed WHERE m = one AND a >= several;
    said := said || ':' || many;
    SELECT count(*) INTO many FROM keyed WHERE m <= one;
    said := said || ':' || many;
    DELETE FROM keyed WHERE m = one AND a = ARRAY[(i - 3) % 5, i - 3];
  END LOOP;
  RETURN said;
END $$;
SELECT on_both('CREATE TABLE keyed (m mood, a int[], r int4range UNIQUE, n int, PRIMARY KEY (m, a))');
SELECT on_both('SELECT compiled(12)');
SELECT on_both('SELECT k FROM keyed k ORDER BY m, a');
RESET mot.compiled_statements;

-- foreign keys
TRUNCATE statements RESTART IDENTITY;
INSERT INTO statements (s) VALUES
  ('CREATE TABLE by_mood (m mood PRIMARY KEY, n int)'),
  ('CREATE TABLE by_list (a int[], r numrange, PRIMARY KEY (a, r))'),
  ('CREATE TABLE child (id int PRIMARY KEY, m mood REFERENCES by_mood ON UPDATE CASCADE ON DELETE SET NULL, a int[], r numrange, FOREIGN KEY (a, r) REFERENCES by_list ON UPDATE CASCADE)'),
  ('CREATE INDEX child_m ON child (m)'),
  ('INSERT INTO by_mood VALUES (''ok'', 1), (''meh'', 2)'),
  ('INSERT INTO by_list VALUES (''{1,2}'', ''[1.0,2)''), (''{}'', ''empty'')'),
  ('INSERT INTO child VALUES (1, ''ok'', ''{1,2}'', ''[1,2.00)'')'),
  ('INSERT INTO child VALUES (2, ''meh'', ''{}'', ''empty''), (3, NULL, ''{1}'', NULL)'),
  ('INSERT INTO child VALUES (4, ''happy'', NULL, NULL)'),
  ('INSERT INTO child VALUES (4, ''ok'', ''{1}'', ''empty'')'),
  ('UPDATE by_mood SET m = ''happy'' WHERE m = ''ok'''),
  ('UPDATE by_list SET a = ''{3}'' WHERE a = ''{1,2}'''),
  ('DELETE FROM by_mood WHERE m = ''meh'''),
  ('DELETE FROM by_list WHERE r = ''empty'''),
  ('UPDATE by_list SET r = ''[1.000,2)'' WHERE a = ''{3}'''),
  ('SELECT c FROM child c ORDER BY id');
SELECT s AS statement, on_both(s) AS answer FROM statements ORDER BY n;

-- partitions, definitions
TRUNCATE statements RESTART IDENTITY;
INSERT INTO statements (s) VALUES
  ('CREATE TABLE parted (m mood, a int[], n int, PRIMARY KEY (m, a)) PARTITION BY LIST (m)'),
  ('CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (''ok'', ''meh'')'),
  ('CREATE TABLE parted_2 PARTITION OF parted DEFAULT'),
  ('INSERT INTO parted SELECT (enum_range(NULL::mood))[i % 5 + 1], ARRAY[i], i FROM generate_series(1, 20) i'),
  ('INSERT INTO parted VALUES (''ok'', ''{3}'', 1) ON CONFLICT (m, a) DO UPDATE SET n = -1'),
  ('UPDATE parted SET m = ''worst'' WHERE m = ''ok'' AND a < ''{9}'''),
  ('SELECT p FROM parted p ORDER BY m, a'),
  ('CREATE TABLE ranged (a int[] PRIMARY KEY, n int) PARTITION BY RANGE (a)'),
  ('CREATE TABLE ranged_1 PARTITION OF ranged FOR VALUES FROM (MINVALUE) TO (''{5}'')'),
  ('CREATE TABLE ranged_2 PARTITION OF ranged FOR VALUES FROM (''{5}'') TO (MAXVALUE)'),
  ('INSERT INTO ranged SELECT ARRAY[i, -i], i FROM generate_series(1, 9) i'),
  ('SELECT tableoid::regclass::text ~ ''_1'', a FROM ranged WHERE a > ''{3}'' ORDER BY a DESC'),
  ('CREATE TABLE dups (m mood, a int[], r int4range)'),
  ('INSERT INTO dups VALUES (''ok'', ''{1}'', ''[1,2]''), (''ok'', ''{1}'', ''[1,3)'')'),
  ('CREATE UNIQUE INDEX ON dups (m)'),
  ('CREATE UNIQUE INDEX ON dups (a)'),
  ('CREATE UNIQUE INDEX ON dups (r)'),
  ('ALTER TABLE dups ADD COLUMN later mood DEFAULT ''meh'', ADD COLUMN list text[] DEFAULT ''{a,NULL}'', ADD COLUMN span numrange DEFAULT ''[1.0,2)'''),
  ('CREATE INDEX ON dups (later, list, span)'),
  ('INSERT INTO dups DEFAULT VALUES'),
  ('SELECT count(*) FROM dups WHERE later = ''meh'' AND list = ''{a,NULL}'' AND span = ''[1,2.0)'''),
  ('ALTER TABLE dups ALTER later TYPE text'),
  ('SELECT count(*) FROM dups WHERE later = ''meh'''),
  ('ALTER TABLE dups ALTER later TYPE mood USING later::mood'),
  ('ALTER TABLE dups ALTER list TYPE varchar[]'),
  ('SELECT count(*) FROM dups WHERE later = ''meh'' AND list = ''{a,NULL}''');
SELECT s AS statement, on_both(s) AS answer FROM statements ORDER BY n;
CREATE TABLE on_mot.moved AS TABLE on_heap.doc;
ALTER TABLE on_mot.moved ADD PRIMARY KEY (id), ADD UNIQUE (a);
CREATE INDEX ON on_mot.moved (e, x);
ALTER TABLE on_mot.moved SET ACCESS METHOD mot;
SELECT rows FROM mot.check('on_mot.moved');
SELECT id FROM on_mot.moved WHERE a = '{3,8}';
ALTER TABLE on_mot.moved SET ACCESS METHOD heap;
SELECT id FROM on_mot.moved WHERE a = '{3,8}';
SELECT t, rows FROM unnest(ARRAY['person', 'doc', 'keyed', 'by_mood', 'by_list', 'child', 'parted_1', 'parted_2', 'ranged_2', 'dups']) t, mot.check(('on_mot.' || t)::regclass);
SELECT * FROM methods WHERE amname NOT IN ('mot', 'mot_index');
-- an own type that borrows a class, a range by another order, and what can be a key under a
-- nondeterministic collation
CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TYPE loose AS RANGE (subtype = text, collation = insensitive);
CREATE TYPE patterned AS RANGE (subtype = text, subtype_opclass = text_pattern_ops);
CREATE TYPE pair AS (a int, b int);
CREATE TABLE on_mot.refused (l loose, p patterned, u text[] COLLATE insensitive, c pair, cs pair[], v tsvector) USING mot;
CREATE FUNCTION refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN EXECUTE statement; RETURN 'accepted'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ': ' || replace(SQLERRM, 'ordered.', ''); END $$;
SELECT c, refused(format('CREATE INDEX ON on_mot.refused (%I)', c)) FROM unnest(ARRAY['l', 'p', 'u', 'c', 'cs', 'v']) c;
-- a type goes with its columns, and they with their indexes
DROP TYPE mood CASCADE;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'on_mot.person'::regclass ORDER BY 1;
SELECT rows FROM mot.check('on_mot.person');
SELECT on_both('INSERT INTO person VALUES (500, 1)');
\pset format aligned
\pset tuples_only off
SET client_min_messages = error;
DROP SCHEMA on_heap, on_mot, ordered CASCADE;
