-- Most key types against a heap table with the same values: order in both directions with NULLs on either end, equality,
-- ranges, uniqueness.
SET jit = off;
CREATE TABLE kt_values (type text, value text);
INSERT INTO kt_values
SELECT 'bool', unnest(ARRAY['f', 't'])
UNION ALL SELECT 'int2', unnest(ARRAY['-32768', '-1', '0', '1', '255', '256', '32767'])
UNION ALL SELECT 'int4', unnest(ARRAY['-2147483648', '-65536', '-1', '0', '1', '65536', '2147483647'])
UNION ALL SELECT 'int8', unnest(ARRAY['-9223372036854775808', '-4294967296', '-1', '0', '1', '4294967296', '9223372036854775807'])
UNION ALL SELECT 'oid', unnest(ARRAY['0', '1', '2147483647', '2147483648', '4294967295'])
UNION ALL SELECT 'float4', unnest(ARRAY['-Infinity', '-1e30', '-1', '-1e-30', '0', '1e-30', '1', '1.5', '1e30', 'Infinity', 'NaN'])
UNION ALL SELECT 'float8', unnest(ARRAY['-Infinity', '-1e300', '-1', '-1e-300', '0', '1e-300', '1', '1.5', '1e300', 'Infinity', 'NaN'])
UNION ALL SELECT 'numeric', unnest(ARRAY['-Infinity', '-1e100', '-12345.678', '-10000', '-9999', '-1', '-0.5', '-0.0001', '0', '1e-50', '0.0001',
  '0.5', '0.51', '1', '1.1', '9999', '10000', '10001', '12345.678', '99999999', '1e100', 'Infinity', 'NaN'])
UNION ALL SELECT 'date', unnest(ARRAY['-infinity', '4713-01-01 BC', '0044-03-15 BC', '1999-12-31', '2000-01-01', '2026-02-28', '5874897-12-31', 'infinity'])
UNION ALL SELECT 'time', unnest(ARRAY['00:00', '00:00:00.000001', '12:00', '23:59:59.999999', '24:00'])
UNION ALL SELECT 'timetz', unnest(ARRAY['00:00+14', '00:00+00', '00:00-12', '12:00+02', '12:00+00', '13:00+03', '24:00-15:59'])
UNION ALL SELECT 'timestamp', unnest(ARRAY['-infinity', '4713-01-01 00:00 BC', '1969-12-31 23:59:59.999999', '2000-01-01', '2000-01-01 00:00:00.000001', '294276-12-31', 'infinity'])
UNION ALL SELECT 'timestamptz', unnest(ARRAY['-infinity', '4713-01-01 00:00+00 BC', '1999-12-31 23:59+01', '2000-01-01 00:00+00', '2030-06-01 12:00-08', 'infinity'])
UNION ALL SELECT 'interval', unnest(ARRAY['-178000000 years', '-1 month', '-30 days 1 second', '-1 day', '0', '1 second', '23 hours', '1 day', '25 hours', '29 days', '1 month', '31 days', '1 year', '178000000 years'])
UNION ALL SELECT 'uuid', unnest(ARRAY['00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000001', '7fffffff-ffff-ffff-ffff-ffffffffffff', '80000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'])
UNION ALL SELECT 'text', unnest(ARRAY['', ' ', 'A', 'AA', 'B', 'Z', 'a', 'a ', 'aa', 'ab', 'b', 'zz', 'ä', 'é', '日本', repeat('x', 1000), repeat('x', 1000) || 'y', chr(1), chr(1114111)])
UNION ALL SELECT 'varchar(1500)', unnest(ARRAY['', 'A', 'a', 'a ', 'ab', 'ä', repeat('x', 1400)])
UNION ALL SELECT 'bpchar(10)', unnest(ARRAY['', 'A', 'a', 'ab', 'ab c', 'ä', 'zzzzzzzzzz'])
UNION ALL SELECT 'bytea', unnest(ARRAY['\x', '\x00', '\x0000', '\x0001', '\x00ff', '\x01', '\x0100', '\x7f', '\x80', '\xff', '\xff00', '\xffff'])
UNION ALL SELECT '"char"', unnest(ARRAY['', ' ', 'A', 'a', '~'])
UNION ALL SELECT 'name', unnest(ARRAY['', 'A', 'a', 'ab', 'pg_class', repeat('n', 63)])
UNION ALL SELECT 'money', unnest(ARRAY['-92233720368547758.08', '-1', '0', '0.01', '1', '92233720368547758.07'])
UNION ALL SELECT 'pg_lsn', unnest(ARRAY['0/0', '0/1', '1/0', 'FFFFFFFF/FFFFFFFF'])
UNION ALL SELECT 'xid8', unnest(ARRAY['0', '1', '4294967296', '18446744073709551615'])
UNION ALL SELECT 'macaddr', unnest(ARRAY['00:00:00:00:00:00', '08:00:2b:01:02:03', '7f:ff:ff:ff:ff:ff', '80:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff'])
UNION ALL SELECT 'macaddr8', unnest(ARRAY['00:00:00:00:00:00:00:00', '08:00:2b:01:02:03:04:05', 'ff:ff:ff:ff:ff:ff:ff:ff'])
UNION ALL SELECT 'inet', unnest(ARRAY['0.0.0.0/0', '0.0.0.0', '10.0.0.0/8', '10.0.0.1/8', '10.0.0.1', '10.1.0.0/16', '192.168.1.1', '255.255.255.255', '::', '::1', '::/0', 'fe80::1/64', 'ffff::'])
UNION ALL SELECT 'cidr', unnest(ARRAY['0.0.0.0/0', '10.0.0.0/8', '10.1.0.0/16', '192.168.0.0/24', '::/0', 'fe80::/64'])
UNION ALL SELECT 'bit(9)', unnest(ARRAY['000000000', '000000001', '011111111', '100000000', '111111111'])
UNION ALL SELECT 'varbit', unnest(ARRAY['', '0', '00', '000000000', '1', '10', '10000000', '100000000', '11', '111111111']);
-- A value that was put between two others has an oid that tells nothing of the order.
CREATE TYPE kt_enum AS ENUM ('low', 'middle', 'high');
ALTER TYPE kt_enum ADD VALUE 'lowest' BEFORE 'low';
ALTER TYPE kt_enum ADD VALUE 'upper' AFTER 'middle';
CREATE TYPE kt_texts AS RANGE (subtype = text, collation = "C");
CREATE TYPE kt_enums AS RANGE (subtype = kt_enum);
CREATE DOMAIN kt_domain AS int CHECK (VALUE IS NOT NULL AND VALUE > -100);
CREATE DOMAIN kt_ints AS int[] CHECK (cardinality(VALUE) < 10);
INSERT INTO kt_values
SELECT 'kt_enum', unnest(enum_range(NULL::kt_enum))::text
UNION ALL SELECT 'tid', unnest(ARRAY['(0,0)', '(0,1)', '(0,256)', '(1,0)', '(256,1)', '(65535,65535)', '(65536,0)', '(4294967295,65535)'])
UNION ALL SELECT 'oidvector', unnest(ARRAY['', '0', '1', '256', '4294967295', '0 0', '1 2', '2 1', '256 1'])
UNION ALL SELECT 'int2vector', unnest(ARRAY['', '0', '1', '-1', '0 0', '1 2', '2 1'])
UNION ALL SELECT type, unnest(ARRAY['{}', '{NULL}', '{NULL,NULL}', '{1}', '{1,NULL}', '{1,NULL,1}', '{1,1}', '{1,2}', '{2}', '[0:0]={1}', '[0:1]={1,2}', '{{1,2}}', '{{1},{2}}',
  '[1:1][0:1]={{1,2}}', '[0:0][1:2]={{1,2}}', '{{1,2},{3,4}}', '{{{1,2},{3,4}}}', '{1,2,3,4}', '{0,1,1,0,1,1,0,1,NULL}'])
  FROM unnest(ARRAY['bool[]', 'int2[]', 'int[]', 'int8[]', 'oid[]', 'float4[]', 'float8[]', 'numeric[]', 'text[]', 'varchar(5)[]', 'bpchar(3)[]', 'bytea[]', 'name[]', '"char"[]', 'money[]', 'interval[]', 'kt_ints',
    'kt_domain[]']) type
  WHERE type NOT IN ('bool[]', 'kt_domain[]')
UNION ALL SELECT 'bool[]', unnest(ARRAY['{}', '{f}', '{t}', '{f,t}', '{t,f}', '{t,NULL}', '{NULL}'])
UNION ALL SELECT 'kt_domain[]', unnest(ARRAY['{}', '{-99}', '{1}', '{1,2}'])
UNION ALL SELECT 'kt_enum[]', unnest(ARRAY['{}', '{low}', '{lowest}', '{lowest,high}', '{high}', '{upper,NULL}', '{NULL}'])
UNION ALL SELECT 'text[]', unnest(ARRAY['{""}', '{"",""}', '{a}', '{"a "}', '{ab}', '{a,b}', '{aa,b}', '{ä}', '{' || repeat('x', 500) || '}', '{' || repeat('x', 500) || ',y}', '{' || repeat('x', 501) || '}'])
UNION ALL SELECT 'numeric[]', unnest(ARRAY['{-1.5}', '{0.0001}', '{1e30}', '{NaN}', '{Infinity,1}', '{-Infinity,1}'])
UNION ALL SELECT 'float8[]', unnest(ARRAY['{-1.5}', '{1e-300}', '{NaN}', '{NaN,1}', '{Infinity}', '{-Infinity}'])
UNION ALL SELECT 'uuid[]', unnest(ARRAY['{}', '{00000000-0000-0000-0000-000000000001}', '{ffffffff-ffff-ffff-ffff-ffffffffffff}', '{00000000-0000-0000-0000-000000000001,00000000-0000-0000-0000-000000000000}'])
UNION ALL SELECT 'inet[]', unnest(ARRAY['{}', '{10.0.0.1}', '{10.0.0.0/8}', '{10.0.0.1,::1}', '{::1}', '{::1/64,10.0.0.1}'])
UNION ALL SELECT 'timetz[]', unnest(ARRAY['{}', '{00:00+00}', '{00:00-01}', '{00:00+00,00:00-01}', '{24:00-15:59}'])
UNION ALL SELECT 'timestamptz[]', unnest(ARRAY['{}', '{-infinity}', '{2000-01-01 00:00+00}', '{2000-01-01 00:00+00,infinity}', '{infinity}'])
UNION ALL SELECT 'date[]', unnest(ARRAY['{}', '{-infinity}', '{2000-01-01}', '{2000-01-01,infinity}', '{infinity}'])
UNION ALL SELECT 'varbit[]', unnest(ARRAY['{}', '{1}', '{10}', '{1,0}', '{100000000}', '{"",1}'])
UNION ALL SELECT 'macaddr8[]', unnest(ARRAY['{}', '{08:00:2b:01:02:03:04:05}', '{08:00:2b:01:02:03:04:05,00:00:00:00:00:00:00:00}', '{ff:ff:ff:ff:ff:ff:ff:ff}'])
UNION ALL SELECT 'tid[]', unnest(ARRAY['{}', '{"(0,1)"}', '{"(0,1)","(0,0)"}', '{"(1,0)"}'])
UNION ALL SELECT 'int4range', unnest(ARRAY['empty', '(,)', '(,0)', '(,1)', '[0,1)', '[0,2)', '[0,)', '[1,2)', '[1,)', '[-2147483648,2147483647)'])
UNION ALL SELECT 'int8range', unnest(ARRAY['empty', '(,)', '(,0)', '[0,1)', '[0,4294967296)', '[-4294967296,0)', '[1,)'])
UNION ALL SELECT 'numrange', unnest(ARRAY['empty', '(,)', '(,0)', '(,0]', '[0,0]', '[0,1)', '[0,1]', '(0,1)', '(0,1]', '[0,)', '(0,)', '[0.5,1e50]', '[-1e50,NaN]', '(NaN,)'])
UNION ALL SELECT 'daterange', unnest(ARRAY['empty', '(,)', '(,2000-01-01)', '[2000-01-01,2000-01-02)', '[2000-01-01,infinity)', '[2000-01-01,)', '[-infinity,2000-01-01)'])
UNION ALL SELECT 'tsrange', unnest(ARRAY['empty', '(,)', '[2000-01-01,2000-01-01]', '[2000-01-01,2000-01-02)', '(2000-01-01,2000-01-02)', '[2000-01-01,2000-01-02]', '[-infinity,infinity]'])
UNION ALL SELECT 'tstzrange', unnest(ARRAY['empty', '(,)', '[2000-01-01 00:00+00,2000-01-02 00:00+00)', '(2000-01-01 00:00+00,2000-01-02 00:00+00)', '[2000-01-01 00:00+00,)'])
UNION ALL SELECT 'kt_texts', unnest(ARRAY['empty', '(,)', '(,"")', '["",""]', '[a,b)', '(a,b)', '[a,b]', '["a ",b]', '[A,b]', '[ä,)', '[a,' || repeat('x', 200) || ']', '[' || repeat('a', 200) || ',b]'])
UNION ALL SELECT 'kt_enums', unnest(ARRAY['empty', '(,)', '[lowest,high]', '[low,middle)', '[low,middle]', '(lowest,)', '[upper,)', '(,high)'])
UNION ALL SELECT 'int4multirange', unnest(ARRAY['{}', '{(,)}', '{(,0)}', '{[0,1)}', '{[0,1),[2,3)}', '{[0,1),[2,4)}', '{[0,1),[2,3),[5,)}', '{[0,2)}', '{[1,2)}', '{[1,)}'])
UNION ALL SELECT 'nummultirange', unnest(ARRAY['{}', '{(,)}', '{(,0]}', '{[0,1)}', '{[0,1]}', '{(0,1)}', '{[0,1),(1,2)}', '{[0,1),(1,2),(2,3),(3,4),(4,5),(5,6)}', '{(0.5,1e30],[1e40,)}'])
UNION ALL SELECT 'tstzmultirange', unnest(ARRAY['{}', '{[2000-01-01 00:00+00,2000-01-02 00:00+00)}', '{[2000-01-01 00:00+00,2000-01-02 00:00+00),(2001-01-01 00:00+00,)}'])
UNION ALL SELECT 'kt_texts_multirange', unnest(ARRAY['{}', '{[a,b)}', '{[a,b],(c,d)}', '{["a ",b]}', '{["",]}', '{[a,b),[' || repeat('x', 150) || ',' || repeat('y', 150) || ']}']);
INSERT INTO kt_values SELECT 'kt_domain', unnest(ARRAY['-99', '0', '5']);
INSERT INTO kt_values SELECT 'regclass', unnest(ARRAY['pg_class', 'pg_index', 'pg_attribute']);

CREATE FUNCTION kt_try(type text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  collate_c text := CASE WHEN type ~ '^(text|varchar|bpchar)' THEN 'COLLATE "C"' ELSE '' END;
  nullable bool := type <> 'kt_domain';
  direction text; nulls text; same bool; op text; value text; other text; wrong text := ''; heap bigint; ours bigint; plan text;
BEGIN
  EXECUTE format('CREATE TABLE kt_heap (id int, k %s %s)', type, collate_c);
  EXECUTE format('CREATE FOREIGN TABLE kt_mot (id int, k %s %s) SERVER mot', type, collate_c);
  EXECUTE format('INSERT INTO kt_heap SELECT row_number() OVER (), value::%s FROM kt_values WHERE type = %L', type, type);
  IF nullable THEN INSERT INTO kt_heap VALUES (1000, NULL), (1001, NULL); END IF;
  -- half of the rows before the indexes, half after
  EXECUTE 'INSERT INTO kt_mot SELECT * FROM kt_heap WHERE id % 2 = 0 ORDER BY random()';
  CREATE UNIQUE INDEX kt_asc ON kt_mot (k);
  CREATE INDEX kt_desc ON kt_mot (k DESC NULLS LAST, id);
  CREATE INDEX kt_first ON kt_mot (k NULLS FIRST, id);
  EXECUTE 'INSERT INTO kt_mot SELECT * FROM kt_heap WHERE id % 2 = 1 ORDER BY random()';
  SET LOCAL enable_sort = off;
  SET LOCAL enable_seqscan = off;
  FOREACH direction IN ARRAY ARRAY['ASC', 'DESC'] LOOP
    FOREACH nulls IN ARRAY ARRAY['FIRST', 'LAST'] LOOP
      EXECUTE format('SELECT (SELECT array_agg(id) FROM (SELECT id FROM kt_mot ORDER BY k %1$s NULLS %2$s, id %1$s) s)
                           = (SELECT array_agg(id) FROM (SELECT id FROM kt_heap ORDER BY k %1$s NULLS %2$s, id %1$s) s)', direction, nulls) INTO same;
      IF same IS NOT TRUE THEN wrong := wrong || format(' order %s NULLS %s', direction, nulls); END IF;
    END LOOP;
  END LOOP;
  FOREACH op IN ARRAY ARRAY['=', '<', '<=', '>', '>='] LOOP
    FOR value IN SELECT v.value FROM kt_values v WHERE v.type = kt_try.type LOOP
      EXECUTE format('SELECT count(*), sum(id) FROM kt_heap WHERE k %s %L::%s', op, value, type) INTO heap;
      EXECUTE format('SELECT count(*), sum(id) FROM kt_mot WHERE k %s %L::%s', op, value, type) INTO ours;
      IF heap <> ours THEN wrong := wrong || format(' k %s %s: %s rather than %s;', op, value, ours, heap); END IF;
    END LOOP;
  END LOOP;
  FOR value IN SELECT v.value FROM kt_values v WHERE v.type = kt_try.type LOOP
    BEGIN
      EXECUTE format('INSERT INTO kt_mot VALUES (2000, %L::%s)', value, type);
      wrong := wrong || format(' duplicate %s entered', value);
    EXCEPTION WHEN unique_violation THEN NULL;
    END;
  END LOOP;
  -- Between any two values, through an ascending index and through a descending one: the least and the greatest are behind nothing.
  FOREACH direction IN ARRAY ARRAY['ASC', 'DESC'] LOOP
    IF direction = 'DESC' THEN DROP INDEX kt_asc, kt_first; END IF;
    FOREACH op IN ARRAY ARRAY['k > $1::%1$s AND k < $2::%1$s', 'k < $2::%1$s AND k > $1::%1$s', 'k >= $1::%1$s AND k <= $2::%1$s'] LOOP
      FOR value, other IN SELECT v.value, w.value FROM kt_values v JOIN kt_values w USING (type) WHERE v.type = kt_try.type LOOP
        EXECUTE format('SELECT count(*) FROM kt_heap WHERE ' || op, type) INTO heap USING value, other;
        EXECUTE format('SELECT count(*) FROM kt_mot WHERE ' || op, type) INTO ours USING value, other;
        IF heap <> ours THEN wrong := wrong || format(' %s, %s and %s: %s rather than %s;', op, value, other, ours, heap); END IF;
      END LOOP;
    END LOOP;
  END LOOP;
  UPDATE kt_mot SET id = id + 1;
  DELETE FROM kt_mot WHERE id % 3 = 0;
  PERFORM mot.check('kt_mot');
  DROP FOREIGN TABLE kt_mot;
  DROP TABLE kt_heap;
  RETURN CASE wrong WHEN '' THEN 'as heap' ELSE wrong END;
END $$;
SELECT type, count(*), kt_try(type) FROM kt_values GROUP BY type ORDER BY type COLLATE "C";
-- Equal values of different bytes
CREATE FOREIGN TABLE kt_equal (n numeric UNIQUE, f float8 UNIQUE, i interval UNIQUE, b bpchar(5) UNIQUE, ns numeric[] UNIQUE, r numrange UNIQUE, m nummultirange UNIQUE) SERVER mot;
INSERT INTO kt_equal VALUES (1.0, 0, '1 month', 'a', '{1.0,NULL}', '[1.0,2)', '{[1.0,2)}');
INSERT INTO kt_equal (n) VALUES (1.00);
INSERT INTO kt_equal (f) VALUES ('-0');
INSERT INTO kt_equal (i) VALUES ('30 days');
INSERT INTO kt_equal (b) VALUES ('a    ');
INSERT INTO kt_equal (ns) VALUES ('{1.00,NULL}');
INSERT INTO kt_equal (r) VALUES ('[1.00,2.000)');
INSERT INTO kt_equal (m) VALUES ('{[1.00,2.0)}');
SELECT n, f, i, b FROM kt_equal WHERE n = 1 AND f = '-0' AND i = '30 days' AND b = 'a';
SELECT ns, r, m FROM kt_equal WHERE ns = '{1,NULL}' AND r = '[1,2)' AND m = '{[1,2)}';
SELECT rows FROM mot.check('kt_equal');
-- Cross-type integers
CREATE FOREIGN TABLE kt_cross (a int2 PRIMARY KEY, b int4 UNIQUE, c int8 UNIQUE) SERVER mot;
INSERT INTO kt_cross SELECT i, i, i FROM generate_series(-5, 5) i;
SELECT count(*) FROM kt_cross WHERE a = 3::int8;
SELECT count(*) FROM kt_cross WHERE a = 3000000000;
SELECT count(*) FROM kt_cross WHERE a < 3000000000;
SELECT count(*) FROM kt_cross WHERE b > -3000000000 AND b <= 2::int2;
SELECT count(*) FROM kt_cross WHERE b >= 3000000000;
SELECT count(*) FROM kt_cross WHERE c = 3::int2;
-- Composite keys, mixed directions, prefixes
CREATE FOREIGN TABLE kt_multi (a int, b text COLLATE "C", c date, PRIMARY KEY (a, b, c)) SERVER mot;
CREATE INDEX ON kt_multi (b DESC, a, c DESC NULLS LAST);
INSERT INTO kt_multi SELECT i % 7, 'b' || i % 5, date '2020-01-01' + i FROM generate_series(1, 300) i;
CREATE TABLE kt_multi_heap AS SELECT * FROM kt_multi;
SET enable_sort = off;
SELECT (SELECT array_agg(s) FROM (SELECT * FROM kt_multi ORDER BY a, b, c) s)::text = (SELECT array_agg(s) FROM (SELECT * FROM kt_multi_heap ORDER BY a, b, c) s)::text AS same;
SELECT (SELECT array_agg(s) FROM (SELECT * FROM kt_multi ORDER BY b DESC, a, c DESC NULLS LAST) s)::text = (SELECT array_agg(s) FROM (SELECT * FROM kt_multi_heap ORDER BY b DESC, a, c DESC NULLS LAST) s)::text AS same;
SELECT (SELECT array_agg(s) FROM (SELECT * FROM kt_multi WHERE a = 3 ORDER BY b DESC, c DESC) s)::text = (SELECT array_agg(s) FROM (SELECT * FROM kt_multi_heap WHERE a = 3 ORDER BY b DESC, c DESC) s)::text AS same;
SELECT (SELECT count(*) FROM kt_multi WHERE a = 3 AND b > 'b1' AND b <= 'b3') = (SELECT count(*) FROM kt_multi_heap WHERE a = 3 AND b > 'b1' AND b <= 'b3') AS same;
SELECT (SELECT count(*) FROM kt_multi WHERE b = 'b2' AND a < 4) = (SELECT count(*) FROM kt_multi_heap WHERE b = 'b2' AND a < 4) AS same;
RESET enable_sort;
-- A key that is too long
CREATE FOREIGN TABLE kt_long (t text PRIMARY KEY, ts text[] COLLATE "C" UNIQUE, n int[]) SERVER mot;
CREATE INDEX kt_long_n ON kt_long (n);
INSERT INTO kt_long VALUES (repeat('x', 15000));
INSERT INTO kt_long VALUES (repeat('x', 16000));
INSERT INTO kt_long VALUES ('long', ARRAY[repeat('x', 16000)]);
INSERT INTO kt_long VALUES ('long', NULL, ARRAY(SELECT generate_series(1, 4000)));
INSERT INTO kt_long VALUES ('long', ARRAY[repeat('x', 15000), 'b'], ARRAY(SELECT generate_series(1, 2000)));
SELECT count(*) FROM kt_long WHERE t = repeat('x', 15000);
SELECT count(*) FROM kt_long WHERE t = repeat('x', 16000);
SELECT count(*) FROM kt_long WHERE ts = ARRAY[repeat('x', 15000), 'b'] AND ts < ARRAY[repeat('x', 16000)] AND ts > ARRAY[repeat('x', 14999), repeat('y', 16000)];
SELECT count(*) FROM kt_long WHERE ts = ARRAY[repeat('x', 16000)];
SELECT count(*) FROM kt_long WHERE n < ARRAY(SELECT generate_series(1, 4000)) AND n > ARRAY(SELECT generate_series(0, 4000));
SELECT n, rows FROM unnest(ARRAY['kt_cross', 'kt_multi', 'kt_long']) n, mot.check(n::regclass);
DROP FOREIGN TABLE kt_equal, kt_cross, kt_multi, kt_long;
DROP TABLE kt_multi_heap, kt_values;
DROP FUNCTION kt_try;
DROP DOMAIN kt_domain, kt_ints;
DROP TYPE kt_texts, kt_enums, kt_enum;
