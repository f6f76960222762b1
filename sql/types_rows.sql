-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_types_rows;
CREATE SCHEMA fdw_types_rows_heap;
SET search_path = fdw_types_rows, pg_catalog;
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
DECLARE mine text := fdw_types_rows.outcome('fdw_types_rows', statement); heap text := fdw_types_rows.outcome('fdw_types_rows_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_types_rows, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_types_rows.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_types_rows_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_types_rows.' || name);
    EXECUTE format(i, 'fdw_types_rows_heap.' || name);
  END LOOP;
END $$;
-- Rows: every kind of value comes back as it went in; long, compressed and out-of-line ones too, and rows with many columns.
SELECT twin('t', 'id int PRIMARY KEY, b bool, c "char", i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, t text, v varchar(10), bp char(8), by bytea, d date, ti time, tz timetz, ts timestamp, tstz timestamptz, iv interval, u uuid, j json, jb jsonb, x xml, inet inet, cidr cidr, mac macaddr, bi bit(5), vb varbit, p point, po polygon, r int4range, m int4multirange, a int[], ta text[], tv tsvector, na name, mo money, o oid, rc regclass, l pg_lsn');
SELECT same('INSERT INTO t VALUES (1, true, ''x'', 1, 2, 3, 1.5, 2.5, 12345.678900, ''text'', ''varchar'', ''bp'', ''\x00ff00'', ''2024-02-29'', ''12:34:56.789'', ''12:34:56+02'', ''2024-02-29 12:00'', ''2024-02-29 12:00Z'', ''1 year 2 mons 3 days'', ''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'', ''{"a": 1}'', ''{"b": [1, 2]}'', ''<a/>'', ''10.0.0.1/8'', ''10.0.0.0/8'', ''08:00:2b:01:02:03'', B''10101'', B''101'', ''(1,2)'', ''((0,0),(1,1),(1,0))'', ''[1,5)'', ''{[1,3),[7,9)}'', ''{1,2,NULL}'', ''{a,"b c",NULL}'', ''fat cat'', ''name'', ''$1.23'', 42, ''pg_class'', ''16/B374D848'') RETURNING *');
SELECT same('INSERT INTO t (id) VALUES (2)');
SELECT same('INSERT INTO t (id, n, f4, f8, d, ts, iv) VALUES (3, ''NaN'', ''-Infinity'', ''NaN'', ''infinity'', ''-infinity'', ''-1 day''), (4, ''Infinity'', ''-0'', ''1e-300'', ''4713-01-01 BC'', ''294276-12-31'', ''178000000 years'')');
SELECT same('TABLE t');
SELECT same('UPDATE t SET a = a || 3, jb = jb || ''{"c": 3}'', t = NULL WHERE id = 1 RETURNING a, jb, t');
SELECT same('UPDATE t SET a[2] = 20, ta[3] = ''c'' WHERE id = 1 RETURNING a, ta');
-- long values: compressible, incompressible, and taken from another table's TOAST
SELECT twin('long', 'id int PRIMARY KEY, v text, w bytea, a text[]');
SELECT same('INSERT INTO long VALUES (1, repeat(''x'', 100000), NULL, NULL), (2, repeat(''abc'', 1000000), NULL, NULL)');
CREATE TABLE toasted (id int, v text, w bytea, c text, a text[]);
ALTER TABLE toasted ALTER c SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT i, string_agg(md5(i::text || g), ''), decode(string_agg(md5(g::text || i), ''), 'hex'), repeat('e', 5000), array_agg(md5(g::text)) FROM generate_series(3, 6) i, generate_series(1, 2000) g GROUP BY i;
SELECT same('INSERT INTO long SELECT id, v, w, a FROM fdw_types_rows.toasted');
SELECT same('INSERT INTO long SELECT id + 10, c, NULL, ARRAY[c, v] FROM fdw_types_rows.toasted');
DROP TABLE toasted;
SELECT same('SELECT id, length(v), md5(v), length(w), md5(w), cardinality(a), md5(a::text) FROM long');
SELECT same('UPDATE long SET v = v || ''!'' WHERE id IN (1, 3) RETURNING id, length(v)');
SELECT same('UPDATE long SET w = w || w WHERE id = 4 RETURNING length(w)');
SELECT same('SELECT id, substr(v, 99990), octet_length(v) FROM long WHERE id = 1');
SELECT same('DELETE FROM long WHERE id = 2');
-- expanded values from PL/pgSQL
CREATE FUNCTION grow() RETURNS void LANGUAGE plpgsql AS $$ DECLARE a text[] := '{}'; BEGIN FOR i IN 1..100 LOOP a[i] := 'element ' || i; END LOOP; INSERT INTO fdw_types_rows.long VALUES (100, 'grown', NULL, a); END $$;
SELECT grow();
SELECT a[1], a[100], cardinality(a) FROM long WHERE id = 100;
-- user types: composites, domains, enums, arrays of them
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE FOREIGN TABLE ut (id positive PRIMARY KEY, m mood, p pair, pp pair[]) SERVER mot;
INSERT INTO ut VALUES (1, 'ok', (1, repeat('y', 3000)), ARRAY[(1, 'a')::pair, (2, NULL)::pair]);
INSERT INTO ut VALUES (-1);
SELECT id, m, (p).x, length((p).y), pp, (pp[2]).x FROM ut WHERE m > 'sad';
UPDATE ut SET p.y = 'short', m = 'happy' WHERE id = 1::positive RETURNING *;
-- many columns, many NULLs
DO $$ BEGIN EXECUTE 'CREATE FOREIGN TABLE wide (' || (SELECT string_agg('c' || i || CASE i % 3 WHEN 0 THEN ' int' WHEN 1 THEN ' text' ELSE ' float8' END, ', ') FROM generate_series(1, 500) i) || ') SERVER mot'; END $$;
INSERT INTO wide (c1, c3, c499, c500) VALUES ('one', 3, 'x', 500);
INSERT INTO wide (c2) VALUES (2);
SELECT c1, c2, c3, c498, c499, c500 FROM wide;
UPDATE wide SET c250 = 'half' WHERE c500 = 500;
SELECT c1, c250, c500 FROM wide ORDER BY c500;
-- a table without columns
CREATE FOREIGN TABLE nothing () SERVER mot;
INSERT INTO nothing DEFAULT VALUES;
INSERT INTO nothing DEFAULT VALUES;
SELECT count(*) FROM nothing;
DELETE FROM nothing;
SELECT count(*) FROM nothing;
SELECT (mot.check('t')).rows AS t, (mot.check('long')).rows AS long, (mot.check('ut')).rows AS ut, (mot.check('wide')).rows AS wide, (mot.check('nothing')).rows AS nothing;
