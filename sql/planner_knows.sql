-- What the planner is told of memory-optimized tables and their indexes, and what comes of it: long lists, joins with what is unique, comparisons of
-- rows and of values of two types. Every statement given to same() runs on memory-optimized tables and on their ordinary twins.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA planner_knows;
CREATE SCHEMA planner_knows_heap;
SET search_path = planner_knows, pg_catalog;
CREATE FUNCTION outcome(place text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text := ''; n bigint := 0; r record;
BEGIN
  PERFORM set_config('search_path', place || ', pg_catalog', true);
  IF statement ~* '^\s*(select|with|values|table|execute)|returning' THEN
    FOR r IN EXECUTE statement LOOP n := n + 1; result := result || r::text || E'\n'; END LOOP;
  ELSE
    EXECUTE statement;
    GET DIAGNOSTICS n = ROW_COUNT;
  END IF;
  RETURN n || ' rows' || E'\n' || result;
EXCEPTION WHEN others THEN
  RETURN 'error ' || sqlstate || ': ' || sqlerrm || E'\n';
END $$;
CREATE FUNCTION same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE mine text := planner_knows.outcome('planner_knows', statement); heap text := planner_knows.outcome('planner_knows_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'planner_knows, pg_catalog', true);
  IF statement !~* 'order by' THEN
    mine := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(mine, E'\n') line);
    heap := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(heap, E'\n') line);
  END IF;
  IF mine IS DISTINCT FROM heap THEN
    RETURN 'DIFFERENT' || E'\n-- mot:\n' || left(mine, 2000) || E'\n-- heap:\n' || left(heap, 2000);
  END IF;
  RETURN 'same: ' || coalesce((regexp_match(mine, '(\d+ rows|error [^\n]*)'))[1], mine);
END $$;
CREATE FUNCTION twin(name text, columns text, VARIADIC indexes text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE i text;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE planner_knows.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE planner_knows_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'planner_knows.' || name);
    EXECUTE format(i, 'planner_knows_heap.' || name);
  END LOOP;
END $$;
-- Lines of a plan that match; without what versions of the server write differently.
CREATE FUNCTION plan(statement text, wanted text DEFAULT '') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF, VERBOSE) ' || statement LOOP
    IF line ~ wanted AND line !~ '^ *Output:' THEN RETURN NEXT regexp_replace(line, ' \(returns [^)]*\)', ''); END IF;
  END LOOP;
END $$;

-- Waits until no transaction runs that began before the last index was made: from then on it is believed.
CREATE PROCEDURE settle() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..3000 LOOP
    EXIT WHEN (SELECT max(i.xmin::text::bigint) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'planner_knows'::regnamespace)
      < pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    PERFORM pg_sleep(0.01);
    COMMIT;
  END LOOP;
END $$;

-- Lists. One of a million costs some bytes for each element, and as little where they come in no order or twice.
CREATE FOREIGN TABLE numbers (id int PRIMARY KEY, a int NOT NULL, t text COLLATE "C") SERVER mot;
INSERT INTO numbers SELECT g, g % 100, 't' || g FROM generate_series(1, 20000) g;
CREATE INDEX ON numbers (a, id);
CREATE INDEX ON numbers (t);
CREATE TABLE lists AS
  SELECT array_agg(g) AS ascending, array_agg((g * 7919::bigint % 1000000)::int) AS mixed, array_agg(g % 1000) AS repeated, array_agg('t' || g) AS texts
  FROM generate_series(1, 1000000) g;
CREATE FUNCTION virtual_kib() RETURNS bigint LANGUAGE sql AS
  $$ SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmPeak:\s*(\d+)'))[1]::bigint $$;
\c -
SET search_path = planner_knows, pg_catalog;
SET enable_seqscan = off;
-- What the list itself takes, and core's pieces of it.
SELECT count(*) FROM lists, unnest(ascending) WHERE unnest = 5;
SELECT virtual_kib() AS before \gset
SELECT count(*), sum(id) FROM numbers WHERE id = ANY (ARRAY(SELECT unnest(ascending) FROM lists));
SELECT count(*), sum(id) FROM numbers WHERE id = ANY ((SELECT mixed FROM lists)::int[]);
SELECT count(*), sum(id) FROM numbers WHERE id = ANY ((SELECT repeated FROM lists)::int[]);
SELECT virtual_kib() - :before < 64 << 10 AS is_little, CASE WHEN virtual_kib() - :before >= 64 << 10 THEN virtual_kib() - :before END AS kib;
SELECT count(*), min(t), max(t) FROM numbers WHERE t = ANY ((SELECT texts FROM lists)::text[]);
SELECT array_agg(id) FROM (SELECT id FROM numbers WHERE id = ANY ((SELECT mixed FROM lists)::int[]) ORDER BY id DESC LIMIT 5) s;
SELECT array_agg(id) FROM (SELECT id FROM numbers WHERE id = ANY ((SELECT mixed FROM lists)::int[]) ORDER BY id LIMIT 5) s;
SELECT count(*), sum(id) FROM numbers WHERE a = ANY ('{5,7,9}') AND id = ANY ((SELECT mixed FROM lists)::int[]);
SELECT count(*), sum(id) FROM numbers WHERE a = 5 AND id = ANY ((SELECT mixed FROM lists)::int[]);
SELECT count(*), sum(id) FROM numbers WHERE a = ANY ((SELECT ascending FROM lists)::int[]) AND id > 19990;
SELECT count(*), sum(id) FROM numbers WHERE a = ANY ((SELECT ascending FROM lists)::int[]) AND id = 19990;
SELECT count(*) FROM numbers WHERE id = ANY ((SELECT array_agg(NULL::int) FROM lists, unnest(ascending))::int[]);
SELECT count(*), sum(id) FROM numbers WHERE id = ANY ((SELECT ascending FROM lists)::int8[] || 5000000000);
-- One value, given several times, with something behind it.
SELECT count(*), sum(id) FROM numbers WHERE a = ANY ('{5,5,5}') AND id = 105;
SELECT count(*), sum(id) FROM numbers WHERE a = ANY ('{5,5,5}') AND id < 300;
SELECT count(*), sum(id) FROM numbers WHERE a = ANY ('{5,5,5}') AND id = ANY ('{105,105,6}');
-- As long as a batch of prefixes, and one more and less; both directions.
SELECT length, count(*), sum(id), (array_agg(id))[1:3] AS first
FROM (VALUES (4095), (4096), (4097), (8192), (8193)) l(length), LATERAL (SELECT id FROM numbers WHERE id = ANY (ARRAY(SELECT generate_series(11, 10 + length))) ORDER BY id) s GROUP BY 1 ORDER BY 1;
SELECT length, count(*), sum(id), (array_agg(id))[1:3] AS first
FROM (VALUES (4095), (4096), (4097), (8192), (8193)) l(length), LATERAL (SELECT id FROM numbers WHERE id = ANY (ARRAY(SELECT generate_series(11, 10 + length))) ORDER BY id DESC) s GROUP BY 1 ORDER BY 1;
SELECT length, count(*), sum(id), (array_agg(id))[1:3] AS first
FROM (VALUES (2047), (2048), (2049), (3000)) l(length), LATERAL (SELECT id FROM numbers WHERE a = ANY ('{5,7}') AND id = ANY (ARRAY(SELECT generate_series(1, length))) ORDER BY a DESC, id DESC) s GROUP BY 1 ORDER BY 1;
RESET enable_seqscan;
DROP TABLE lists;

-- What is unique: a join that reads nothing of it goes, and one that reads of it stops at the first row.
SELECT twin('m', 'id int PRIMARY KEY, g int, t text COLLATE "C", f bool, v text', 'CREATE UNIQUE INDEX ON %s (t)', 'CREATE UNIQUE INDEX ON %s (g, f)');
SELECT twin('h', 'x int, y int8, z text COLLATE "C", f bool, d numeric');
SELECT same('INSERT INTO m SELECT i, i / 2, ''t'' || i, i % 2 = 0, ''v'' || i FROM generate_series(1, 2000) i');
SELECT same('INSERT INTO m VALUES (3001, NULL, NULL, NULL, ''n''), (3002, NULL, NULL, NULL, ''n'')');
SELECT same('INSERT INTO h SELECT i % 700, i, ''t'' || i % 900, i % 3 = 0, i FROM generate_series(1, 3000) i UNION ALL SELECT NULL, NULL, NULL, NULL, NULL');
ANALYZE m, h, planner_knows_heap.m, planner_knows_heap.h;
CALL settle();
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.id = h.x');
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.id = h.y');
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.t = h.z');
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.g = h.x AND m.f = h.f');
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.g = h.x AND m.f');
-- Not all of a key, nothing that is equal, or no equality of the key's.
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.g = h.x', 'Join|Loop');
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.id > h.x AND m.id < h.x + 2', 'Join|Loop');
SELECT plan('SELECT h.x FROM h LEFT JOIN m ON m.id::numeric = h.d', 'Join|Loop');
SELECT plan('SELECT h.x, m.v FROM h JOIN m ON m.id = h.x', 'Join|Loop|Unique');
SELECT plan('SELECT h.x, m.v FROM h JOIN m ON m.id = h.y AND m.t = h.z', 'Join|Loop|Unique');
SELECT same('SELECT count(*), sum(h.x) FROM h LEFT JOIN m ON m.id = h.x');
SELECT same('SELECT h.x FROM h LEFT JOIN m ON m.id = h.y ORDER BY 1');
SELECT same('SELECT count(*) FROM h LEFT JOIN m ON m.g = h.x AND m.f = h.f');
CREATE FUNCTION joins() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT s || ': ' || planner_knows.same(s) FROM unnest(ARRAY[
    'SELECT h.*, m.* FROM h JOIN m ON m.id = h.x',
    'SELECT h.*, m.* FROM h LEFT JOIN m ON m.id = h.x AND m.g > 100',
    'SELECT h.*, m.* FROM h LEFT JOIN m ON m.id = h.y AND m.v <> ''v7''',
    'SELECT h.*, m.* FROM h FULL JOIN m ON m.id = h.y',
    'SELECT h.*, m.* FROM h LEFT JOIN m ON m.t = h.z AND m.f IS NOT NULL',
    'SELECT h.*, m.* FROM h JOIN m ON m.g = h.x AND m.f = h.f',
    'SELECT m.*, n.* FROM m JOIN m n ON n.id = m.g',
    'SELECT m.*, n.v FROM m LEFT JOIN m n ON n.t = m.t AND n.id = m.id + 0',
    'SELECT h.x FROM h WHERE EXISTS (SELECT FROM m WHERE m.id = h.x AND m.g % 3 = 0)',
    'SELECT h.x FROM h WHERE h.x NOT IN (SELECT id FROM m WHERE id IS NOT NULL)',
    'SELECT DISTINCT h.x FROM h JOIN m ON m.id = h.x',
    'SELECT h.x, count(*) FROM h JOIN m ON m.id = h.x GROUP BY 1 ORDER BY 1',
    'SELECT m.id, m.v, count(h.*) FROM m LEFT JOIN h ON h.x = m.id GROUP BY m.id ORDER BY m.id']) s $$;
SELECT joins();
SET enable_hashjoin = off;
SELECT joins();
SET enable_mergejoin = off;
SELECT joins();
RESET enable_mergejoin;
RESET enable_hashjoin;
SET enable_nestloop = off;
SET enable_hashjoin = off;
SELECT joins();
RESET enable_nestloop;
RESET enable_hashjoin;
-- Changes by such joins, with BEFORE triggers and without, and what the statement itself makes.
SELECT same('UPDATE m SET v = v || h.y FROM h WHERE m.id = h.x AND h.y < 500 RETURNING m.id, m.v');
SELECT same('UPDATE h SET y = m.g FROM m WHERE m.id = h.x RETURNING h.*');
SELECT same('WITH w AS (UPDATE m SET id = id + 5000 WHERE id <= 100 RETURNING id) SELECT h.x, m.v, w.id FROM h LEFT JOIN m ON m.id = h.x LEFT JOIN w ON w.id = m.id + 5000');
SELECT same('WITH w AS (INSERT INTO m SELECT i + 9000, NULL, NULL, NULL, ''new'' FROM generate_series(1, 50) i RETURNING id) SELECT w.id, m.v FROM w LEFT JOIN m ON m.id = w.id');
SELECT same('DELETE FROM h USING m WHERE m.id = h.x AND m.g % 5 = 0 RETURNING h.*');
CREATE FUNCTION planner_knows.shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := upper(NEW.v); RETURN NEW; END $$;
CREATE TRIGGER shout BEFORE UPDATE ON m FOR EACH ROW EXECUTE FUNCTION planner_knows.shout();
CREATE TRIGGER shout BEFORE UPDATE ON planner_knows_heap.m FOR EACH ROW EXECUTE FUNCTION planner_knows.shout();
SELECT same('UPDATE m SET v = v || ''x'' FROM h WHERE m.id = h.x AND h.f RETURNING m.id, m.v');
SELECT same('UPDATE m SET g = n.g FROM m n WHERE n.id = m.g AND m.f IS NULL');
SELECT same('SELECT * FROM m');
SELECT same('SELECT m.id, h.x FROM h JOIN m ON m.id = h.x WHERE h.x < 50 FOR UPDATE OF m');
-- Of an index that this transaction has made nothing is believed: its snapshot may be older.
BEGIN;
CREATE FOREIGN TABLE fresh (k int PRIMARY KEY, v text) SERVER mot;
SELECT plan('SELECT h.x FROM h LEFT JOIN fresh ON k = x', 'Join|Loop');
COMMIT;
CALL settle();
SELECT plan('SELECT h.x FROM h LEFT JOIN fresh ON k = x');
-- Values that are unique by their bytes, and not in every collation.
CREATE COLLATION planner_knows.folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FOREIGN TABLE words (w text COLLATE "C" PRIMARY KEY) SERVER mot;
INSERT INTO words VALUES ('a'), ('A'), ('b');
CREATE TABLE asked (q text COLLATE "C");
INSERT INTO asked VALUES ('a'), ('B'), ('c');
CALL settle();
SELECT plan('SELECT q FROM asked LEFT JOIN words ON w = q');
SELECT q FROM asked LEFT JOIN words ON w = q COLLATE planner_knows.folded ORDER BY 1;
SELECT q, w FROM asked JOIN words ON w = q COLLATE planner_knows.folded ORDER BY 1, w COLLATE "C";
-- And times that are one in a zone that leaves hours out.
SET TimeZone = 'Europe/Berlin';
CREATE FOREIGN TABLE hours (hour timestamp PRIMARY KEY) SERVER mot;
INSERT INTO hours VALUES ('2024-03-31 02:30'), ('2024-03-31 03:30'), ('2024-03-31 04:30');
CREATE TABLE instants (at timestamptz, hour timestamp);
INSERT INTO instants SELECT g, g FROM generate_series(timestamptz '2024-03-31 00:30', '2024-03-31 05:30', '1 hour') g;
CALL settle();
SELECT plan('SELECT at FROM instants LEFT JOIN hours USING (hour)');
SELECT at FROM instants LEFT JOIN hours ON hours.hour = at ORDER BY 1;
SELECT instants.hour, hours.hour FROM instants JOIN hours ON hours.hour = at ORDER BY 1, 2;
RESET TimeZone;

-- Heap tables are planned as without the extension: values of two types are one where they are equal.
CREATE TABLE heap_a (x float4 PRIMARY KEY);
CREATE TABLE heap_b (y float8 PRIMARY KEY);
SELECT plan('SELECT * FROM heap_a JOIN heap_b ON x = y WHERE y = 3', 'x = ');
CREATE TABLE heap_d (d date PRIMARY KEY);
CREATE TABLE heap_t (t timestamp PRIMARY KEY);
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SELECT plan('SELECT * FROM heap_d JOIN heap_t ON d = t', 'Join|Sort|Scan');
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_seqscan;

-- Comparisons of rows: the first value bounds the scan.
SELECT twin('pages', 'id serial, a int, b int, c text COLLATE "C"', 'CREATE INDEX ON %s (a, b)', 'CREATE INDEX ON %s (c DESC NULLS LAST, id)', 'CREATE INDEX ON %s (b DESC, a)');
SELECT same('INSERT INTO pages (a, b, c) SELECT nullif(i % 300, 7), nullif(i * 7 % 31, 3), nullif(''k'' || i % 211, ''k11'') FROM generate_series(1, 6000) i');
ANALYZE pages, planner_knows_heap.pages;
SELECT plan('SELECT a, b FROM pages WHERE (a, b) > (250, 3) ORDER BY a, b LIMIT 10');
SELECT plan('SELECT a, b FROM pages WHERE (290, 3) <= (a, b) ORDER BY a, b LIMIT 10');
SELECT plan('SELECT a, b FROM pages WHERE (a, b) < (5, 3) ORDER BY a DESC, b DESC LIMIT 10');
SELECT plan('SELECT c, id FROM pages WHERE (c, id) < (''k13'', 30) ORDER BY c DESC NULLS LAST, id LIMIT 10', 'Cond|Filter');
SELECT plan('SELECT a, b FROM pages WHERE (a, b) > (250, a)', 'Cond|Filter');
SELECT plan('SELECT a, b FROM pages WHERE (a, b) > (b, 3)', 'Cond|Filter');
SELECT plan('SELECT a, b FROM pages WHERE (a, b) > ((random() * 0)::int, 3)', 'Cond|Filter');
SELECT plan('SELECT a, b FROM pages WHERE (a, b) = (250, 3) AND (a, b) <> (250, 4)', 'Cond|Filter');
SELECT plan('SELECT h.x, p.a FROM h, pages p WHERE h.y = 5 AND (p.a, p.b) > (h.x, h.y)', 'Cond|Filter|Loop|Scan');
SELECT plan('UPDATE pages SET c = ''x'' WHERE (a, b) >= (299, 5)', 'Update|Cond|Filter');
SELECT same('SELECT a, b FROM pages WHERE (a, b) > (250, 3) ORDER BY a, b LIMIT 10');
SELECT same('SELECT a, b FROM pages WHERE (290, 3) <= (a, b) ORDER BY a, b LIMIT 10');
SELECT same('SELECT a, b FROM pages WHERE (a, b) < (5, 3) ORDER BY a DESC, b DESC LIMIT 10');
SELECT same('SELECT c, id FROM pages WHERE (c, id) < (''k13'', 30) ORDER BY c DESC NULLS LAST, id LIMIT 10');
SELECT same('SELECT * FROM pages WHERE (a, b) > (250, a)');
SELECT same('SELECT * FROM pages WHERE (a, b) > (NULL, 3)');
SELECT same('SELECT * FROM pages WHERE (a, b) >= (298, NULL)');
SELECT same('SELECT * FROM pages WHERE (a, b) > (5000000000, 3)');
SELECT same('SELECT * FROM pages WHERE (a, b) > (-5000000000, 3) AND a < 9');
SELECT same('SELECT * FROM pages WHERE (b, a) >= (30, 200) AND (b, a) < (30, 210)');
SELECT same('SELECT h.x, p.* FROM h, pages p WHERE h.y = 5 AND (p.a, p.b) > (h.x + 290, h.y)');
SELECT same('SELECT h.x, p.* FROM h LEFT JOIN pages p ON (p.a, p.b) > (h.x + 290, h.y) AND (p.a, p.b) <= (297, 4) WHERE h.y < 9');
SET plan_cache_mode = force_generic_plan;
PREPARE page(int, int) AS SELECT a, b FROM pages WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 5;
PREPARE page_heap(int, int) AS SELECT a, b FROM planner_knows_heap.pages WHERE (a, b) > ($1, $2) ORDER BY a, b LIMIT 5;
SELECT outcome('planner_knows', s) = outcome('planner_knows', replace(s, 'page', 'page_heap')) AS is_same
FROM unnest(ARRAY['EXECUTE page(0, 0)', 'EXECUTE page(0, NULL)', 'EXECUTE page(NULL, 0)', 'EXECUTE page(299, 5)', 'EXECUTE page(299, 31)', 'EXECUTE page(-1, 0)']) s;
EXPLAIN (COSTS OFF) EXECUTE page(1, 2);
RESET plan_cache_mode;
SELECT same('UPDATE pages SET c = c || ''!'' WHERE (a, b) >= (295, 5) RETURNING *');
SELECT same('DELETE FROM pages WHERE (a, b) < (3, 9) RETURNING *');

-- Values of two types, where the other can be converted exactly.
SELECT twin('mixed', 'id serial, ts timestamp, tz timestamptz, d date, f float4, g float8, i int, s smallint, n name, t text COLLATE "C"', 'CREATE INDEX ON %s (ts)', 'CREATE INDEX ON %s (tz DESC)', 'CREATE INDEX ON %s (d)',
  'CREATE INDEX ON %s (f)', 'CREATE INDEX ON %s (g DESC NULLS LAST)', 'CREATE INDEX ON %s (i)', 'CREATE INDEX ON %s (s)', 'CREATE INDEX ON %s (n)', 'CREATE INDEX ON %s (t)');
-- Random ones.
CREATE FUNCTION literal(col text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN random() < 0.03 THEN 'NULL' WHEN col IN ('ts', 'tz', 'd') THEN
    quote_literal(CASE WHEN random() < 0.15 THEN (ARRAY['-infinity', 'infinity'])[1 + floor(random() * 2)::int]
      WHEN random() < 0.5 THEN to_char(timestamp '2024-03-30' + (floor(random() * 16) * 6) * interval '1 hour', 'YYYY-MM-DD HH24:MI')
      WHEN random() < 0.5 THEN to_char(timestamp '2024-03-31' + (floor(random() * 20) * 15) * interval '1 minute', 'YYYY-MM-DD HH24:MI')
      WHEN random() < 0.5 THEN to_char(timestamp '2024-10-27' + (floor(random() * 20) * 15) * interval '1 minute', 'YYYY-MM-DD HH24:MI:SS')
      WHEN random() < 0.6 THEN (ARRAY['4713-01-01 BC', '294276-12-30', '0001-01-01', '2000-01-01', '1999-12-31 23:59:59.999999'])[1 + floor(random() * 5)::int]
      ELSE '2024-04-01' END)
    WHEN col IN ('f', 'g') THEN
      quote_literal((ARRAY['0', '-0', '1', '1.5', '0.1', '-0.1', '1e-40', '-1e-40', '1e-44', '16777216', '16777217', '3.4e38', '-3.4e38', 'NaN', 'Infinity', '-Infinity'])[1 + floor(random() * 16)::int])
    WHEN col IN ('i', 's') THEN (floor(random() * 40) - 20)::text
    ELSE quote_literal((ARRAY['', 'a', 'b', 'ab', 'A', 'ä'])[1 + floor(random() * 6)::int]) END $$;
-- What it is compared with is of a type of btree's family; some values are only of that type.
CREATE FUNCTION other(col text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE of text := (CASE WHEN col IN ('ts', 'tz', 'd') THEN ARRAY['timestamp', 'timestamptz', 'date'] WHEN col IN ('f', 'g') THEN ARRAY['float4', 'float8']
  WHEN col IN ('i', 's') THEN ARRAY['int2', 'int4', 'int8'] ELSE ARRAY['text', 'name'] END)[1 + floor(random() * 3)::int];
BEGIN
  of := coalesce(of, 'float8');
  IF col IN ('n', 't') AND of = 'float8' THEN of := 'text'; END IF;
  RETURN (CASE WHEN random() < 0.2 AND of = 'float8' THEN quote_literal((ARRAY['1e300', '-1e300', '1e-300', '-1e-300', '0.1', '16777217', '3.4028235677973366e38', '3.5e38', '1.4e-45', '7e-46'])[1 + floor(random() * 10)::int])
    WHEN random() < 0.2 AND of = 'date' THEN quote_literal((ARRAY['5874897-12-31', '294277-01-01', '4714-11-24 BC'])[1 + floor(random() * 3)::int])
    WHEN random() < 0.2 AND of = 'int8' THEN (ARRAY['5000000000', '-5000000000', '32768', '-32769'])[1 + floor(random() * 4)::int]
    ELSE planner_knows.literal(col) END) || '::' || of;
END $$;
CREATE FUNCTION conditions(col text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE op text := (ARRAY['=', '<', '<=', '>', '>='])[1 + floor(random() * 5)::int]; kind float8 := random(); one text := planner_knows.other(col);
BEGIN
  RETURN CASE WHEN kind < 0.15 THEN format('%s = ANY (ARRAY[%s, %s, %s])', col, one, planner_knows.literal(col) || substring(one FROM '::.*'), planner_knows.literal(col) || substring(one FROM '::.*'))
    WHEN kind < 0.35 THEN format('%s %s %s', one, op, col)
    WHEN kind < 0.45 THEN format('(%s, id) %s (%s, 30)', col, op, one)
    ELSE format('%s %s %s', col, op, one) END;
END $$;
CREATE TABLE differences (statement text, result text);
CREATE PROCEDURE compare(rows int, statements int) LANGUAGE plpgsql AS $$
DECLARE line text; statement text; col text; result text;
BEGIN
  FOR n IN 1..rows LOOP
    -- Digits that float4 rounds, and times beyond what there is, are errors in neither place.
    line := format('INSERT INTO mixed (ts, tz, d, f, g, i, s, n, t) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)', planner_knows.literal('ts'), planner_knows.literal('tz'),
      CASE WHEN random() < 0.05 THEN '''5874897-12-31''' ELSE planner_knows.literal('d') || '::timestamp' END, planner_knows.literal('f'), planner_knows.literal('g'), planner_knows.literal('i'), planner_knows.literal('s'), planner_knows.literal('n'), planner_knows.literal('t'));
    result := planner_knows.same(line);
    IF result !~ '^same: 1 rows' THEN INSERT INTO planner_knows.differences VALUES (line, result); END IF;
  END LOOP;
  FOR n IN 1..statements LOOP
    col := (ARRAY['ts', 'ts', 'tz', 'tz', 'd', 'd', 'f', 'f', 'g', 'i', 's', 'n', 't'])[1 + floor(random() * 13)::int];
    statement := (SELECT format('SELECT id FROM mixed WHERE %s', string_agg(planner_knows.conditions(col), ' AND ')) FROM generate_series(1, 1 + floor(random() * 2)::int));
    IF random() < 0.3 THEN statement := format('%s ORDER BY %s%s, id LIMIT 20', statement, col, (ARRAY['', ' DESC'])[1 + floor(random() * 2)::int]); END IF;
    PERFORM set_config('TimeZone', (ARRAY['Europe/Berlin', 'UTC', 'America/New_York', 'Pacific/Apia', 'Africa/Monrovia'])[1 + floor(random() * 5)::int], false);
    result := planner_knows.same(statement);
    IF result !~ '^same: \d+ rows' THEN INSERT INTO planner_knows.differences VALUES (statement, result); END IF;
  END LOOP;
END $$;
SET TimeZone = 'Europe/Berlin';
SELECT setseed(0.25);
CALL compare(400, 0);
ANALYZE mixed;
-- By an index:
SELECT plan('SELECT * FROM mixed WHERE ts >= current_date', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE tz = timestamp ''2024-03-31 02:30''', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE tz < date ''1999-01-01''', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE d <= timestamp ''2024-01-01 12:00''', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE f = 1.5::float8', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE g < 1.5::float4', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE 5::int8 > s', 'Cond|Filter');
-- The column's values are what is converted: a range that has all that may pass, and the filter.
SELECT plan('SELECT * FROM mixed WHERE ts >= now()', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE timestamptz ''2024-03-31 03:00Z'' > d', 'Cond|Filter');
-- Filters: not even that, or they are compared by another collation.
SELECT plan('SELECT * FROM mixed WHERE ts = now()', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE (ts, id) > (now(), 5)', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE d = now()', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE n = ''x''::text', 'Cond|Filter');
SELECT plan('SELECT * FROM mixed WHERE t = ''x''::name', 'Cond|Filter');
-- The heap table is read without its indexes: they miss times that are one in the session's zone.
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
CALL compare(0, 1500);
SELECT * FROM differences LIMIT 10;
SELECT count(*) FROM differences;
-- The zones farthest from all others.
CREATE TABLE far AS SELECT z.zone, t.type, r.op, '2024-03-31 00:00Z'::timestamptz + h * interval '1 hour' AS at
  FROM unnest(ARRAY['ABC167', 'ABC-167', 'ABC167DEF', 'ABC-167DEF', 'Pacific/Apia', 'America/New_York']) z (zone), unnest(ARRAY['ts', 'd']) t (type), unnest(ARRAY['<', '<=', '>', '>=']) r (op),
    unnest(ARRAY[-340, -172, -168, -167, 0, 1, 167, 168, 172, 340]) h;
DO $$
DECLARE f record; result text;
BEGIN
  FOR f IN SELECT * FROM planner_knows.far LOOP
    PERFORM set_config('TimeZone', f.zone, false);
    result := planner_knows.same(format('SELECT id FROM mixed WHERE %s %s to_timestamp(%s)', f.type, f.op, extract(epoch FROM f.at)));
    IF result !~ '^same: \d+ rows' THEN INSERT INTO planner_knows.differences VALUES (f::text, result); END IF;
  END LOOP;
END $$;
SELECT * FROM differences LIMIT 10;
SET TimeZone = 'Europe/Berlin';
-- Joins by such equalities; not merged, for in no order of the one are all of the others in theirs.
SET enable_mergejoin = off;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.ts = b.d') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.tz = b.d') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.tz = b.ts') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.f = b.g') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.i = b.s') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.n = b.t') ~ '^same: \d+ rows' AS is_same;
SET enable_hashjoin = off;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.ts = b.d') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.tz = b.ts') ~ '^same: \d+ rows' AS is_same;
SELECT same('SELECT a.id, b.id FROM mixed a JOIN mixed b ON a.f = b.g') ~ '^same: \d+ rows' AS is_same;
-- The time zone is that of the moment: a plan that is kept does not keep it.
SET plan_cache_mode = force_generic_plan;
PREPARE zoned(timestamp) AS SELECT count(*) FROM mixed WHERE tz >= $1 AND tz < timestamp '2024-04-01';
PREPARE zoned_heap(timestamp) AS SELECT count(*) FROM planner_knows_heap.mixed WHERE tz >= $1 AND tz < timestamp '2024-04-01';
SET TimeZone = 'Asia/Tokyo';
SELECT outcome('planner_knows', 'EXECUTE zoned(''2024-03-31'')') = outcome('planner_knows', 'EXECUTE zoned_heap(''2024-03-31'')') AS is_same;
SET TimeZone = 'America/Los_Angeles';
SELECT outcome('planner_knows', 'EXECUTE zoned(''2024-03-31'')') = outcome('planner_knows', 'EXECUTE zoned_heap(''2024-03-31'')') AS is_same;
RESET ALL;
SET search_path = planner_knows, pg_catalog;
SELECT (mot.check('m')).rows AS m, (mot.check('pages')).rows AS pages, (mot.check('mixed')).rows AS mixed;
-- Paths are offered where they can win, and only there: a merge join takes an index in the direction in which what follows the fixed column ascends,
CREATE FOREIGN TABLE falling (a int NOT NULL, b int NOT NULL, PRIMARY KEY (a, b)) SERVER mot;
CREATE INDEX falling_b ON falling (a, b DESC);
CREATE FOREIGN TABLE rising (b int PRIMARY KEY, c int) SERVER mot;
CREATE INDEX rising_b ON rising (b DESC);
CREATE FOREIGN TABLE two (a int PRIMARY KEY, b int) SERVER mot;
INSERT INTO falling SELECT i % 3, i FROM generate_series(1, 3000) i;
INSERT INTO rising SELECT i, i FROM generate_series(1, 3000) i;
INSERT INTO two VALUES (1, 1), (2, 2);
ANALYZE falling, rising, two;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
ALTER TABLE falling DROP CONSTRAINT falling_pkey;
ALTER TABLE rising DROP CONSTRAINT rising_pkey;
EXPLAIN (COSTS OFF) SELECT count(*) FROM falling JOIN rising USING (b) WHERE falling.a = 1;
EXPLAIN (COSTS OFF) SELECT * FROM falling JOIN rising USING (b) WHERE falling.a = 1 ORDER BY b DESC;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
-- of two rows all are read, of three one is found, a first row comes soonest without an index,
EXPLAIN SELECT * FROM two WHERE a = 1;
INSERT INTO two VALUES (3, 3);
EXPLAIN SELECT * FROM two WHERE a = 1;
EXPLAIN SELECT * FROM rising WHERE b > 10 LIMIT 1;
EXPLAIN SELECT * FROM rising WHERE b > 10;
-- and a range is estimated alike whether the index answers all that is asked, or a part.
EXPLAIN SELECT * FROM rising WHERE b BETWEEN 11 AND 110;
EXPLAIN SELECT * FROM rising WHERE b BETWEEN 11 AND 110 AND c > 0;
EXPLAIN SELECT * FROM falling WHERE a = 2 AND b < 1000;
EXPLAIN SELECT * FROM falling JOIN rising ON rising.b = falling.b WHERE falling.a = 2 AND falling.b < 20;
EXPLAIN (COSTS OFF) UPDATE rising SET c = 0 WHERE b = 7;
EXPLAIN (COSTS OFF) DELETE FROM rising WHERE b IN (7, 8, 9);
SET client_min_messages = warning;
DROP SCHEMA planner_knows, planner_knows_heap CASCADE;
