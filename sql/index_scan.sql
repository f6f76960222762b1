-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_index_scan;
CREATE SCHEMA fdw_index_scan_heap;
SET search_path = fdw_index_scan, pg_catalog;
CREATE FUNCTION outcome(place text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text := ''; n bigint := 0; r record;
BEGIN
  PERFORM set_config('search_path', place || ', pg_catalog', true);
  IF statement ~* '^\s*(select|with|values|table)|returning' THEN
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
DECLARE mine text := fdw_index_scan.outcome('fdw_index_scan', statement); heap text := fdw_index_scan.outcome('fdw_index_scan_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_index_scan, pg_catalog', true);
  IF statement !~* 'order by' THEN
    mine := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(mine, E'\n') line);
    heap := (SELECT string_agg(line, E'\n' ORDER BY line) FROM regexp_split_to_table(heap, E'\n') line);
  END IF;
  IF mine IS DISTINCT FROM heap THEN
    RETURN 'DIFFERENT' || E'\n-- mot:\n' || left(mine, 2000) || E'\n-- heap:\n' || left(heap, 2000);
  END IF;
  RETURN 'same: ' || coalesce((regexp_match(mine, '(\d+ rows|error [^\n]*)'))[1], mine);
END $$;
-- The same table in both places.
CREATE FUNCTION twin(name text, columns text, VARIADIC indexes text[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
DECLARE i text;
BEGIN
  EXECUTE format('CREATE FOREIGN TABLE fdw_index_scan.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_index_scan_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_index_scan.' || name);
    EXECUTE format(i, 'fdw_index_scan_heap.' || name);
  END LOOP;
END $$;
-- Index scans: every kind of condition, both directions, every kind of key; the answers of ordinary tables, through the index.
SET enable_seqscan = off;
SELECT twin('t', 'a int, b int, c text COLLATE "C", d date, id serial', 'CREATE INDEX ON %s (a, b)', 'CREATE INDEX ON %s (b DESC NULLS LAST, a)', 'CREATE INDEX ON %s (c)', 'CREATE INDEX ON %s (d DESC, c)');
SELECT same('INSERT INTO t SELECT nullif(i % 23, 7), nullif((i * 7) % 31, 3), nullif(''k'' || (i % 40), ''k11''), date ''2024-01-01'' + i % 50 FROM generate_series(1, 3000) i');
-- one column
SELECT same('SELECT * FROM t WHERE a = 5');
SELECT same('SELECT * FROM t WHERE a < 3');
SELECT same('SELECT * FROM t WHERE a <= 3');
SELECT same('SELECT * FROM t WHERE a > 20');
SELECT same('SELECT * FROM t WHERE a >= 20');
SELECT same('SELECT * FROM t WHERE a > 3 AND a < 6');
SELECT same('SELECT * FROM t WHERE a > 3 AND a > 5 AND a <= 9 AND a < 8');
SELECT same('SELECT * FROM t WHERE a > 5 AND a < 4');
SELECT same('SELECT * FROM t WHERE a BETWEEN 5 AND 5');
SELECT same('SELECT * FROM t WHERE 5 > a');
SELECT same('SELECT * FROM t WHERE a IS NULL');
SELECT same('SELECT * FROM t WHERE a IS NOT NULL');
SELECT same('SELECT * FROM t WHERE a = NULL');
SELECT same('SELECT * FROM t WHERE a IN (3, 1, 2, 2, NULL, 99)');
SELECT same('SELECT * FROM t WHERE a = ANY (ARRAY[]::int[])');
SELECT same('SELECT * FROM t WHERE a = ANY (NULL::int[])');
SELECT same('SELECT * FROM t WHERE a = ALL (ARRAY[4, 4])');
SELECT same('SELECT * FROM t WHERE a <> 4');
SELECT same('SELECT * FROM t WHERE a = 1 OR a = 2');
-- several columns
SELECT same('SELECT * FROM t WHERE a = 5 AND b = 9');
SELECT same('SELECT * FROM t WHERE a = 5 AND b > 9');
SELECT same('SELECT * FROM t WHERE a = 5 AND b BETWEEN 4 AND 12');
SELECT same('SELECT * FROM t WHERE a = 5 AND b IS NULL');
SELECT same('SELECT * FROM t WHERE a IS NULL AND b = 4');
SELECT same('SELECT * FROM t WHERE a IS NULL AND b IS NULL');
SELECT same('SELECT * FROM t WHERE a IN (4, 2) AND b IN (9, 1, 5)');
SELECT same('SELECT * FROM t WHERE a IN (4, 2) AND b < 9');
SELECT same('SELECT * FROM t WHERE a > 4 AND b = 9');
SELECT same('SELECT * FROM t WHERE b < 5');
SELECT same('SELECT * FROM t WHERE b >= 28 AND a < 10');
SELECT same('SELECT * FROM t WHERE b IS NULL AND a >= 3');
SELECT same('SELECT * FROM t WHERE (a, b) > (20, 3)');
-- order, both ways, with and without conditions
SELECT same('SELECT a, b FROM t ORDER BY a, b');
SELECT same('SELECT a, b FROM t ORDER BY a DESC, b DESC');
SELECT same('SELECT b, a FROM t ORDER BY b DESC NULLS LAST, a');
SELECT same('SELECT b, a FROM t ORDER BY b NULLS FIRST, a DESC');
SELECT same('SELECT b, a FROM t ORDER BY b, a');
SELECT same('SELECT a, b FROM t WHERE a IN (9, 3, 5) ORDER BY a, b');
SELECT same('SELECT a, b FROM t WHERE a IN (9, 3, 5) ORDER BY a DESC, b DESC');
SELECT same('SELECT a, b FROM t WHERE a = 5 ORDER BY b LIMIT 10');
SELECT same('SELECT a, b FROM t WHERE a = 5 ORDER BY b DESC LIMIT 10');
SELECT same('SELECT a, b FROM t WHERE a BETWEEN 3 AND 8 ORDER BY a DESC, b DESC OFFSET 100 LIMIT 20');
SELECT same('SELECT c FROM t ORDER BY c');
SELECT same('SELECT d, c FROM t WHERE d < ''2024-01-10'' ORDER BY d DESC, c');
SELECT same('SELECT min(a), max(a), min(c), max(c), min(d), max(d) FROM t');
SELECT same('SELECT max(b) FROM t WHERE a = 5');
SELECT same('SELECT min(b) FROM t WHERE a = 5');
-- text
SELECT same('SELECT * FROM t WHERE c = ''k3''');
SELECT same('SELECT * FROM t WHERE c LIKE ''k3%''');
SELECT same('SELECT * FROM t WHERE c LIKE ''k_5''');
SELECT same('SELECT * FROM t WHERE c LIKE ''k3''');
SELECT same('SELECT * FROM t WHERE c LIKE ''%5''');
SELECT same('SELECT * FROM t WHERE c LIKE ''k\_5%''');
SELECT same('SELECT * FROM t WHERE c ^@ ''k1''');
SELECT same('SELECT * FROM t WHERE c > ''k25'' AND c <= ''k31''');
SELECT same('SELECT * FROM t WHERE c IN (''k1'', ''k2'', ''zz'')');
SELECT same('SELECT * FROM t WHERE c > repeat(''k'', 5000)');
SELECT same('SELECT * FROM t WHERE c < repeat(''k'', 5000)');
SELECT same('SELECT * FROM t WHERE c = repeat(''k'', 5000)');
-- a collation under which more than bytes are equal; LIKE under it is an error before 18
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT same('SELECT * FROM t WHERE c COLLATE fdw_index_scan.loose = ''K3''');
SELECT same('SELECT * FROM t WHERE c COLLATE fdw_index_scan.loose IN (''K3'', ''k4'')');
SELECT same('SELECT * FROM t WHERE c COLLATE fdw_index_scan.loose > ''K38''');
SELECT same('SELECT * FROM t WHERE c COLLATE fdw_index_scan.loose LIKE ''K3%''') LIKE 'same: %' AS same;
-- texts of two collations, and nobody says by which they are compared: 42P22 on both sides, in words that say for what it was wanted
CREATE COLLATION german (provider = icu, locale = 'de');
SELECT twin('tc', 'id int PRIMARY KEY, c text COLLATE "C" UNIQUE, d text COLLATE fdw_index_scan.german UNIQUE');
SELECT same('INSERT INTO tc SELECT i, ''k'' || i, ''k'' || i FROM generate_series(1, 30) i');
SELECT left(outcome(place, 'SELECT a.id FROM tc a JOIN tc b ON ' || condition || ' ORDER BY a.id'), 12), condition
FROM unnest(ARRAY['a.c = b.d', 'a.c < b.d', 'a.c = b.d AND b.id = 3', 'a.c = b.d COLLATE "C" AND b.id = 3', 'a.d > b.c AND b.id = 3']) condition, unnest(ARRAY['fdw_index_scan', 'fdw_index_scan_heap']) place;
SELECT left(outcome(place, 'SELECT id FROM tc WHERE ' || condition), 12), condition
FROM unnest(ARRAY['c = (SELECT d FROM tc WHERE id = 3)', 'c >= (SELECT d FROM tc WHERE id = 3)', 'c = ANY (SELECT d FROM tc)', 'c COLLATE "C" = (SELECT d FROM tc WHERE id = 3)', 'd ^@ (SELECT c FROM tc WHERE id = 3)']) condition, unnest(ARRAY['fdw_index_scan', 'fdw_index_scan_heap']) place;
-- ends of ranges about as long as a key can be, and longer than any; ordinary tables have no index for such values
SELECT twin('l', 't text COLLATE "C" NOT NULL, u text COLLATE "C", b bytea, p bpchar COLLATE "C", n numeric, s varbit, id int');
SELECT same('INSERT INTO l SELECT repeat(''a'', i) || c, repeat(''a'', i) || c, decode(repeat(''00'', i / 2) || ''61'', ''hex''), repeat('' '', i) || c || ''  '',
  (repeat(''1'', 2 * i - 20) || length(c))::numeric, repeat(''1'', 8 * i)::varbit, i FROM generate_series(2696, 2700) i, unnest(ARRAY['''', ''a'', ''b'']) c');
CREATE INDEX ON fdw_index_scan.l (t);
CREATE INDEX ON fdw_index_scan.l (u DESC);
CREATE INDEX ON fdw_index_scan.l (b);
CREATE INDEX ON fdw_index_scan.l (p);
CREATE INDEX ON fdw_index_scan.l (n DESC);
CREATE INDEX ON fdw_index_scan.l (s);
SELECT same('INSERT INTO l (t) SELECT repeat(''a'', 2701) || c FROM unnest(ARRAY['''', ''a'', ''b'', ''c'']) c');
SELECT same('INSERT INTO l (t, u) SELECT ''x'', repeat(''a'', 2701) || c FROM unnest(ARRAY['''', ''a'', ''b'', ''c'']) c');
SELECT op, same(format('SELECT i, c, (SELECT count(*) FROM l WHERE t %1$s repeat(''a'', i) || c), (SELECT count(*) FROM l WHERE u %1$s repeat(''a'', i) || c),
    (SELECT count(*) FROM l WHERE p %1$s (repeat('' '', i) || c)::bpchar)
  FROM generate_series(2694, 2706) i, unnest(ARRAY['''', ''a'', ''b'', ''ab'', ''bb'', '' '', E''\t'', ''cc'']) c ORDER BY 1, 2', op))
FROM unnest(ARRAY['<', '<=', '>', '>=', '=']) op;
SELECT op, same(format('SELECT i, (SELECT count(*) FROM l WHERE b %1$s decode(repeat(''00'', i / 2) || c, ''hex'')),
    (SELECT count(*) FROM l WHERE n %1$s (repeat(''1'', 2 * i - 20) || length(c))::numeric), (SELECT count(*) FROM l WHERE s %1$s repeat(''1'', 8 * i)::varbit)
  FROM generate_series(2680, 2720) i, unnest(ARRAY['''', ''61'', ''6161'']) c ORDER BY 1, 2, 3, 4', op))
FROM unnest(ARRAY['<', '<=', '>', '>=', '=']) op;
SELECT same('SELECT count(*) FROM l WHERE b < decode(repeat(''7a'', 1000000), ''hex'') AND b > decode(repeat(''00'', 1000000), ''hex'')');
SELECT same('SELECT count(*) FROM l WHERE n < ''1e6000'' AND n > -(2::numeric ^ 20000)');
-- integers of other widths: in range, and beyond both ends
SELECT same('SELECT * FROM t WHERE a = 5::bigint');
SELECT same('SELECT * FROM t WHERE a = 5000000000');
SELECT same('SELECT * FROM t WHERE a < 5000000000');
SELECT same('SELECT * FROM t WHERE a > 5000000000');
SELECT same('SELECT * FROM t WHERE a > -5000000000');
SELECT same('SELECT * FROM t WHERE a <= -5000000000');
SELECT same('SELECT * FROM t WHERE a < 4::smallint');
SELECT same('SELECT * FROM t WHERE a IN (5::bigint, 5000000000, 6)');
SELECT same('SELECT * FROM t WHERE a = 5.0');
SELECT same('SELECT * FROM t WHERE a = 5.5');
-- joins through the index
SELECT same('SELECT t1.id, t2.id FROM t t1 JOIN t t2 ON t2.a = t1.b WHERE t1.id < 40');
SELECT same('SELECT t1.id, t2.id FROM t t1 JOIN t t2 ON t2.a = t1.b AND t2.b = t1.a WHERE t1.id < 200');
SELECT same('SELECT t1.id, t2.id FROM t t1 LEFT JOIN t t2 ON t2.a = t1.b AND t2.b > t1.a WHERE t1.id < 40');
SELECT same('SELECT x.i, (SELECT count(*) FROM t WHERE a = x.i AND b < x.i) FROM generate_series(0, 25) x(i)');
SELECT same('SELECT id FROM t WHERE a = (SELECT max(a) FROM t) AND b = 4');
SELECT same('SELECT x.i, y.id FROM generate_series(1, 5) x(i), LATERAL (SELECT id FROM t WHERE a = x.i ORDER BY b, id LIMIT 3) y ORDER BY 1, 2');
SELECT same('SELECT count(*) FROM t t1, t t2 WHERE t1.a = 5 AND t2.a = t1.a AND t2.b = 9');
-- other kinds of keys
SELECT twin('k', 'b bool, i2 smallint, i8 bigint, f4 real, f8 float8, n numeric, t text, v varchar(20), bp char(5), by bytea, ts timestamptz, iv interval, u uuid, id int',
  'CREATE INDEX ON %s (b, i2)', 'CREATE INDEX ON %s (i8)', 'CREATE INDEX ON %s (f4)', 'CREATE INDEX ON %s (f8 DESC)', 'CREATE INDEX ON %s (n)', 'CREATE INDEX ON %s (t)',
  'CREATE INDEX ON %s (v)', 'CREATE INDEX ON %s (bp)', 'CREATE INDEX ON %s (by)', 'CREATE INDEX ON %s (ts)', 'CREATE INDEX ON %s (iv)', 'CREATE INDEX ON %s (u)');
SELECT same('INSERT INTO k SELECT i % 3 = 0, i % 100 - 50, i * 10000000000 - 5000000000000, (i % 17 - 8) / 2.0, CASE i % 5 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-Infinity'' ELSE (i - 500) * 1.5 END,
  (i - 500) / 7.0, chr(97 + i % 26) || i % 7, ''Val'' || i % 30, chr(65 + i % 26), decode(to_hex(4096 + i), ''hex''), timestamptz ''1999-12-31 00:00Z'' + i * interval ''7 hours'',
  (i % 50 - 25) * interval ''11 hours'', md5(i::text)::uuid, i FROM generate_series(1, 1000) i');
SELECT same('SELECT * FROM k WHERE b AND i2 = 10');
SELECT same('SELECT * FROM k WHERE NOT b AND i2 < -45');
SELECT same('SELECT * FROM k WHERE b = false AND i2 BETWEEN -3 AND 3');
SELECT same('SELECT * FROM k WHERE i2 = 70000 AND b');
SELECT same('SELECT * FROM k WHERE i8 < 0 AND i8 > -50000000000');
SELECT same('SELECT * FROM k WHERE i8 = 0');
SELECT same('SELECT * FROM k WHERE f4 = 0');
SELECT same('SELECT * FROM k WHERE f4 < -2');
SELECT same('SELECT * FROM k WHERE f8 > 600');
SELECT same('SELECT * FROM k WHERE f8 = ''NaN''');
SELECT same('SELECT f8 FROM k ORDER BY f8 DESC');
SELECT same('SELECT f8 FROM k ORDER BY f8 LIMIT 300');
SELECT same('SELECT * FROM k WHERE n BETWEEN -1 AND 1.000');
SELECT same('SELECT * FROM k WHERE n = 0.00');
SELECT same('SELECT n FROM k ORDER BY n');
SELECT same('SELECT * FROM k WHERE t = ''b1''');
SELECT same('SELECT * FROM k WHERE t LIKE ''b%''');
SELECT same('SELECT * FROM k WHERE t < ''c''');
SELECT same('SELECT t FROM k ORDER BY t');
SELECT same('SELECT * FROM k WHERE v = ''Val5''');
SELECT same('SELECT * FROM k WHERE v IN (''Val5'', ''Val6'')');
SELECT same('SELECT * FROM k WHERE bp = ''C''');
SELECT same('SELECT * FROM k WHERE bp = ''C    ''::char(5)');
SELECT same('SELECT * FROM k WHERE by > ''\x1100''');
SELECT same('SELECT * FROM k WHERE ts < ''2000-01-05''');
SELECT same('SELECT ts FROM k ORDER BY ts DESC LIMIT 9');
SELECT same('SELECT * FROM k WHERE iv = ''11 hours''');
SELECT same('SELECT iv FROM k ORDER BY iv');
SELECT same('SELECT * FROM k WHERE u = md5(''77'')::uuid');
-- keys change under a scan's feet
SELECT same('UPDATE t SET a = a + 1 WHERE a BETWEEN 1 AND 5');
SELECT same('SELECT * FROM t WHERE a BETWEEN 1 AND 6');
SELECT same('DELETE FROM t WHERE b IN (1, 2, 3)');
SELECT same('SELECT * FROM t WHERE b <= 4');
SELECT (mot.check('t')).rows AS t, (mot.check('k')).rows AS k;
