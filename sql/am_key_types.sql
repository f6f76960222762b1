-- Keys of types that hold others, of text search and of extensions, in databases of each kind of
-- default collation: whatever heap tables and memory-optimized ones answer differently.
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on
CREATE SCHEMA checks;
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE EXTENSION cube;
CREATE EXTENSION seg;
CREATE EXTENSION isn;
-- What the statement gives, or its error; t stands for the table.
CREATE FUNCTION checks.answer(statement text, method text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
  EXECUTE replace(statement, '§', 'on_' || method || '_') INTO said;
  RETURN coalesce(said, 'nothing');
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || replace(SQLERRM, 'on_' || method || '_', '');
END $$;
CREATE FUNCTION checks.both(statement text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE heap text := checks.answer(statement, 'heap'); mot text := checks.answer(statement, 'mot');
BEGIN
  IF heap IS DISTINCT FROM mot THEN RETURN NEXT format('%s: heap says %s, mot %s', statement, left(heap, 200), left(mot, 200)); END IF;
END $$;
-- Whether the plan has an index and no sort.
CREATE FUNCTION checks.is_by_index(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text; has_index boolean := false; has_sort boolean := false;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    has_index := has_index OR line ~ 'Index';
    has_sort := has_sort OR line ~ 'Sort';
  END LOOP;
  RETURN has_index AND NOT has_sort;
END $$;
-- Tables with these values, and what their answers differ in.
CREATE FUNCTION checks.differences(typ text, source text, has_ends boolean) RETURNS SETOF text LANGUAGE plpgsql
  SET client_min_messages = warning SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off AS $$
DECLARE method text; statement text; form text; op text;
BEGIN
  FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
    EXECUTE replace(replace(format('
      DROP TABLE IF EXISTS §child, §t, §u;
      CREATE TABLE §t (id int PRIMARY KEY, v %1$s) USING #;
      CREATE TABLE §u (v %1$s UNIQUE, n int, id int) USING #;
      CREATE TABLE §child (id int, v %1$s REFERENCES §u (v) ON UPDATE CASCADE ON DELETE CASCADE) USING #;
      INSERT INTO §t SELECT row_number() OVER (), v FROM (%2$s) s (v);
      INSERT INTO §t VALUES (0, NULL);
      CREATE INDEX §up ON §t (v, id);
      CREATE INDEX §down ON §t (v DESC, id);
      CREATE INDEX §child_v ON §child (v);
      ANALYZE §t', typ, source), '§', 'on_' || method || '_'), '#', method);
  END LOOP;
  FOREACH form IN ARRAY ARRAY['index', 'sort', 'merge', 'bitmap'] LOOP
    PERFORM set_config('enable_sort', CASE form WHEN 'index' THEN 'off' ELSE 'on' END, true),
      set_config('enable_nestloop', CASE form WHEN 'merge' THEN 'off' ELSE 'on' END, true),
      set_config('enable_mergejoin', CASE form WHEN 'merge' THEN 'on' ELSE 'off' END, true),
      set_config('enable_bitmapscan', CASE form WHEN 'bitmap' THEN 'on' ELSE 'off' END, true),
      set_config('enable_indexscan', CASE form WHEN 'bitmap' THEN 'off' ELSE 'on' END, true);
    RETURN QUERY SELECT form || ': ' || b FROM unnest(ARRAY[
      'SELECT string_agg(id::text, '','') FROM (SELECT id FROM §t ORDER BY v, id) s',
      'SELECT string_agg(id::text, '','') FROM (SELECT id FROM §t ORDER BY v DESC, id) s',
      'SELECT string_agg(id::text, '','') FROM (SELECT id FROM §t ORDER BY v DESC, id DESC LIMIT 20) s',
      'SELECT string_agg(format(''%s=%s'', a.id, b.id), '','' ORDER BY a.id, b.id) FROM §t a JOIN §t b ON a.v = b.v',
      'SELECT string_agg(id::text, '','' ORDER BY id) FROM §t WHERE v = ANY (ARRAY(SELECT v FROM §t WHERE id % 3 = 0))',
      'SELECT string_agg(id::text, '','') FROM (SELECT id FROM §t WHERE v > (SELECT v FROM §t WHERE id = 5) ORDER BY v, id) s',
      'SELECT string_agg(id::text, '','') FROM (SELECT id FROM §t WHERE v BETWEEN (SELECT v FROM §t WHERE id = 7) AND (SELECT v FROM §t WHERE id = 17) ORDER BY v, id) s',
      'SELECT count(*) FROM (SELECT DISTINCT v FROM §t) s',
      'SELECT string_agg(n::text, '','' ORDER BY m) FROM (SELECT min(id) m, count(*) n FROM §t GROUP BY v) s']) q, checks.both(q) b;
    IF has_ends THEN
      RETURN QUERY SELECT checks.both('SELECT lower(concat(min(v), '' '', max(v))) FROM §t');
    END IF;
    IF form = 'index' THEN
      FOREACH op IN ARRAY ARRAY['<', '<=', '>', '>='] LOOP
        RETURN QUERY SELECT form || ': ' || checks.both(format('SELECT concat(count(*), '' '', sum(a.id * b.id %% 1009)) FROM §t a JOIN §t b ON a.v %s b.v', op));
      END LOOP;
    END IF;
  END LOOP;
  RETURN QUERY SELECT b FROM unnest(ARRAY[
    'WITH i AS (INSERT INTO §u SELECT v, 0, id FROM §t WHERE v IS NOT NULL ORDER BY id ON CONFLICT DO NOTHING RETURNING id) SELECT string_agg(id::text, '','' ORDER BY id) FROM i',
    'WITH i AS (INSERT INTO §u SELECT DISTINCT ON (v) v, 0, id FROM §t WHERE v IS NOT NULL ORDER BY v, id DESC ON CONFLICT (v) DO UPDATE SET n = §u.n + 1, v = excluded.v RETURNING n) SELECT count(*) FROM i',
    'WITH i AS (INSERT INTO §u SELECT v, 0, id FROM §t WHERE id = 3 RETURNING id) SELECT count(*) FROM i',
    'WITH i AS (UPDATE §u SET v = (SELECT v FROM §t WHERE id = 3) WHERE id = 9 RETURNING id) SELECT count(*) FROM i',
    'WITH i AS (INSERT INTO §child SELECT id, v FROM §t RETURNING id) SELECT count(*) FROM i',
    'WITH i AS (UPDATE §u SET v = (SELECT v FROM §t WHERE id = 3) WHERE v = (SELECT v FROM §t WHERE id = 3) RETURNING id) SELECT count(*) FROM i',
    'WITH i AS (DELETE FROM §u WHERE v IN (SELECT v FROM §t WHERE id % 2 = 0) RETURNING id) SELECT count(*) FROM i',
    'SELECT string_agg(concat(id, v), '','' ORDER BY id) FROM §child',
    'SELECT string_agg(concat(id, v, n), '','' ORDER BY id) FROM §u']) q, checks.both(q) b;
  PERFORM set_config('enable_sort', 'off', true), set_config('enable_indexscan', 'on', true);
  RETURN NEXT format('%s: %s, by index %s, ordered %s', typ, (mot.index_key_kinds('on_mot_up'::regclass))[1], checks.is_by_index('SELECT id FROM on_mot_t WHERE v = (SELECT v FROM on_mot_t WHERE id = 3)'),
    checks.is_by_index('SELECT id FROM on_mot_t ORDER BY v, id'));
END $$;
CREATE FUNCTION checks.documents() RETURNS SETOF jsonb LANGUAGE sql AS $$
  WITH s (s) AS (SELECT unnest(ARRAY['null', 'true', 'false', '0', '-1', '1', '1.0', '1.50', '-1e100', '1e-50', '123456789012345678901234567890', '""', '"a"', '"A"', '"ab"', '"b"', '"B"',
      '"a b"', '"é"', '"e"', '"Z"', '"co-op"', '"coop"', '"\u0001"', '"ÄÖ"', '"ﬁ"', '[]', '{}', '[[]]', '[{}]', '[[[1]]]', '{"a": {"b": null}}'])),
    j (j) AS (SELECT s FROM s
      UNION ALL SELECT format('[%s]', s) FROM s
      UNION ALL SELECT format('{"a": %s}', s) FROM s
      UNION ALL SELECT format('{%s: 1, "b": 2}', s) FROM s WHERE s ~ '^"'
      UNION ALL SELECT format('[%s, %s]', a.s, b.s) FROM s a, s b WHERE length(a.s) < 3 AND length(b.s) = 3
      UNION ALL SELECT format('[[%s], 1, {"A": [%s, null], "é": 1}]', a.s, a.s) FROM s a WHERE length(a.s) > 3
      UNION ALL SELECT format('[%s]', string_agg(i || ', "' || repeat('x', i % 7) || '"', ', ')) FROM generate_series(1, 70) i, generate_series(1, 3) k GROUP BY k
      UNION ALL SELECT format('{%s}', string_agg(format('"%s": %s', i, i * k), ', ')) FROM generate_series(1, 50) i, generate_series(1, 3) k GROUP BY k)
  SELECT j::jsonb FROM j $$;
CREATE FUNCTION checks.jsonb() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT checks.differences('jsonb', 'SELECT checks.documents()', false)
  UNION ALL SELECT checks.differences('jsonb[]', 'SELECT ARRAY[d, ''"x"''] FROM checks.documents() d WHERE jsonb_typeof(d) <> ''object'' UNION ALL SELECT ARRAY[NULL, d] FROM checks.documents() d WHERE jsonb_typeof(d) = ''string''', true) $$;
-- Computed keys of jsonb.
CREATE FUNCTION checks.computed() RETURNS SETOF text LANGUAGE plpgsql SET jit = off SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE method text;
BEGIN
  FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
    EXECUTE replace(replace('
      CREATE TABLE §c (id int PRIMARY KEY, j jsonb) USING #;
      CREATE INDEX §c_name ON §c (lower(j->>''a''));
      CREATE UNIQUE INDEX §c_a ON §c ((j->''a''), id) WHERE j ? ''a'';
      INSERT INTO §c SELECT row_number() OVER (), d FROM checks.documents() d WHERE jsonb_typeof(d) = ''object''', '§', 'on_' || method || '_'), '#', method);
  END LOOP;
  RETURN QUERY SELECT b FROM unnest(ARRAY[
    'SELECT string_agg(id::text, '','' ORDER BY id) FROM §c WHERE lower(j->>''a'') = ''a''',
    'SELECT string_agg(id::text, '','' ORDER BY id) FROM §c WHERE j ? ''a'' AND j->''a'' = ''"A"''',
    'SELECT string_agg(id::text, '','') FROM (SELECT id FROM §c WHERE j ? ''a'' ORDER BY j->''a'', id) s',
    'WITH i AS (INSERT INTO §c SELECT id + 1000, j FROM §c ON CONFLICT (id) DO NOTHING RETURNING id) SELECT count(*) FROM i',
    'SELECT string_agg(id::text, '','' ORDER BY id) FROM §c WHERE j ? ''a'' AND j->''a'' > ''"A"''']) q, checks.both(q) b;
  RETURN NEXT format('computed: by index %s', checks.is_by_index('SELECT id FROM on_mot_c WHERE j ? ''a'' AND j->''a'' = ''1'''));
END $$;
-- citext under the default collation, and under others
CREATE FUNCTION checks.names() RETURNS SETOF text LANGUAGE sql AS $$
  WITH s (s) AS (SELECT unnest(ARRAY['', 'foo@bar', 'Foo@Bar', 'FOO@bar', 'a', 'A', 'b', 'B', 'ab', 'Ab', 'a b', 'A-B', 'ab-', 'é', 'É', 'e', 'E', 'ÄÖÜ', 'äöü', 'ẞ', 'ß', 'SS', 'ss', 'İ', 'I', 'i', 'ı',
    'ΣΑΣ', 'σας', 'σασ', 'Ⱥ', 'ⱥ', 'K', 'k', 'Ж', 'ж', 'Ა', 'ა', '𐐀', '𐐨', 'Ǆ', 'ǅ', 'ǆ', '_', 'Z', '[', 'z', E'\x01', 'a1', 'A10', 'a2']))
  SELECT s FROM s UNION ALL SELECT a.s || b.s FROM s a, s b WHERE a.s = 'É' $$;
CREATE FUNCTION checks.citext() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT checks.differences('citext', 'SELECT checks.names()', true)
  UNION ALL SELECT checks.differences('citext COLLATE "C"', 'SELECT checks.names()', true)
  UNION ALL SELECT checks.differences('citext COLLATE "en_US.utf8"', 'SELECT checks.names()', true)
  UNION ALL SELECT checks.differences('citext COLLATE "de-x-icu"', 'SELECT checks.names()', true)
  UNION ALL SELECT checks.differences('citext[]', 'SELECT ARRAY[n, NULL, n] FROM checks.names() n UNION ALL SELECT ARRAY[n] FROM checks.names() n', true) $$;
-- Expressions, casts, constants.
CREATE FUNCTION checks.emails() RETURNS SETOF text LANGUAGE plpgsql SET jit = off SET enable_seqscan = off AS $$
DECLARE method text;
BEGIN
  FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
    EXECUTE replace(replace('
      CREATE TABLE §e (email citext PRIMARY KEY, n int, other text) USING #;
      CREATE UNIQUE INDEX ON §e ((other::citext), n) WHERE n > 0;
      INSERT INTO §e SELECT DISTINCT ON (s::citext) s, row_number() OVER (), s FROM checks.names() s ORDER BY s::citext, s COLLATE "C"', '§', 'on_' || method || '_'), '#', method);
  END LOOP;
  RETURN QUERY SELECT b FROM unnest(ARRAY[
    'SELECT concat(email, n) FROM §e WHERE email = ''fOO@bAR''',
    'SELECT concat(email, n) FROM §e WHERE email = ''fOO@bAR''::text',
    'SELECT string_agg(email || n, '','' ORDER BY n) FROM §e WHERE email = ANY (''{AB,FOO@BAR,É,Z,nothing}''::citext[])',
    'SELECT string_agg(email || n, '','' ORDER BY n) FROM §e WHERE email IN (''AB'', ''foo@bar'', ''É'')',
    'SELECT string_agg(email || n, '','' ORDER BY n) FROM §e WHERE email LIKE ''Fo%''',
    'SELECT string_agg(n::text, '','') FROM (SELECT n FROM §e WHERE email > ''AB'' AND email <= ''Z'' ORDER BY email) s',
    'SELECT string_agg(n::text, '','') FROM (SELECT n FROM §e WHERE n > 0 AND other::citext = ''FOO@BAR'' ORDER BY n) s',
    'SELECT string_agg(n::text, '','') FROM (SELECT n FROM §e WHERE n > 0 ORDER BY other::citext, n) s',
    'WITH i AS (INSERT INTO §e VALUES (''FOO@BAR'', 1) RETURNING 1) SELECT count(*) FROM i',
    'WITH i AS (INSERT INTO §e VALUES (''FOO@BAR'', 1) ON CONFLICT (email) DO UPDATE SET email = excluded.email, n = -1 RETURNING email) SELECT email FROM i',
    'WITH i AS (INSERT INTO §e SELECT ''x'' || email, n, upper(other) FROM §e WHERE n > 0 RETURNING 1) SELECT count(*) FROM i',
    'SELECT string_agg(email || n, '','' ORDER BY n, email) FROM §e']) q, checks.both(q) b;
  RETURN NEXT format('emails: by index %s, computed %s', checks.is_by_index('SELECT n FROM on_mot_e WHERE email = ''A'''), checks.is_by_index('SELECT n FROM on_mot_e WHERE n > 0 AND other::citext = ''A'''));
  BEGIN
    CREATE INDEX ON on_mot_e ((ARRAY[email]));
  EXCEPTION WHEN feature_not_supported THEN RETURN NEXT SQLERRM;
  END;
  FOREACH method IN ARRAY ARRAY['heap', 'mot'] LOOP
    EXECUTE replace('CREATE UNIQUE INDEX §e_pattern ON §e (email citext_pattern_ops); CREATE INDEX ON §e ((other::citext) citext_pattern_ops DESC)', '§', 'on_' || method || '_');
  END LOOP;
  SET LOCAL enable_sort = off;
  RETURN QUERY SELECT b FROM unnest(ARRAY[
    'SELECT string_agg(n::text, '','') FROM (SELECT n FROM §e ORDER BY email USING ~<~) s',
    'SELECT string_agg(n::text, '','') FROM (SELECT n FROM §e WHERE email ~>=~ ''B'' AND email ~<~ ''É'' ORDER BY email USING ~>~) s',
    'SELECT string_agg(n::text, '','') FROM (SELECT n FROM §e WHERE other::citext ~<=~ ''foo@BAR'' ORDER BY other::citext USING ~>~, n) s']) q, checks.both(q) b;
  RETURN NEXT format('patterns: by index %s', checks.is_by_index('SELECT n FROM on_mot_e WHERE email ~>~ ''a'' ORDER BY email USING ~<~'));
END $$;
-- Row types: NULLs, others inside, a dropped column, whole rows of a table with compressed texts, a
-- domain.
CREATE FUNCTION checks.rows() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  CREATE TYPE checks.pair AS (a int, gone int, b text);
  ALTER TYPE checks.pair DROP ATTRIBUTE gone;
  CREATE TYPE checks.deep AS (p checks.pair, f float8, ps checks.pair[], n numeric, r int4range, j jsonb, c citext, d text COLLATE "de-x-icu");
  CREATE TABLE checks.whole (n int, t text, l text COMPRESSION lz4);
  CREATE DOMAIN checks.noted AS checks.pair CHECK ((VALUE).a IS DISTINCT FROM 77);
  INSERT INTO checks.whole SELECT n % 3, t || n % 5, l FROM generate_series(1, 40) n, (VALUES (NULL, 'l'), (repeat('ab', 1100), 'x'), ('short', repeat('b', 2300)), ('é', 'É')) v (t, l);
  ALTER TABLE checks.whole ADD COLUMN later int DEFAULT 5;
  RETURN QUERY SELECT checks.differences('checks.pair', 'SELECT ROW(a, b)::checks.pair FROM unnest(ARRAY[1, 2, NULL, -5, 300]) a, unnest(ARRAY['''', ''a'', ''A'', ''ab'', ''b'', ''é'', ''co-op'', ''coop'', NULL, repeat(''x'', 200)]) b', false)
  UNION ALL SELECT checks.differences('checks.deep', 'SELECT ROW(ROW(a % 3, x), a / 7.0, CASE a % 4 WHEN 0 THEN NULL WHEN 1 THEN ARRAY[]::checks.pair[] ELSE ARRAY[NULL, ROW(a % 2, x)]::checks.pair[] END, (a % 5) / 2.0, int4range(a % 3, 9), to_jsonb(x), upper(x), x)::checks.deep
      FROM generate_series(1, 30) a, unnest(ARRAY[''a'', ''É'', ''e'', NULL]) x
      UNION ALL SELECT ROW(NULL, NULL, NULL, (a % 3) * 1.00, NULL, NULL, NULL, NULL)::checks.deep FROM generate_series(1, 9) a', false)
  UNION ALL SELECT checks.differences('checks.whole', 'SELECT w FROM checks.whole w', false)
  UNION ALL SELECT checks.differences('checks.noted', 'SELECT ROW(a % 7, chr(97 + a % 5))::checks.pair FROM generate_series(1, 40) a', false)
  UNION ALL SELECT checks.differences('checks.pair[]', 'SELECT ARRAY[ROW(a % 3, NULL), NULL, ROW(NULL, chr(97 + a % 5))]::checks.pair[] FROM generate_series(1, 40) a', true);
END $$;
-- Types of text search and of extensions: random values beside those that their orders look at.
CREATE FUNCTION checks.extensions() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  CREATE TYPE checks.typed AS (s seg, l ltree, h hstore, v tsvector, c cube, i citext);
  CREATE TEMP TABLE word ON COMMIT DROP AS SELECT unnest(ARRAY['a', 'b', 'ab', 'abc', 'A', 'é', 'B', 'b1']) w;
  RETURN QUERY SELECT checks.differences('tsvector', 'SELECT v::tsvector FROM unnest(ARRAY['''', ''a'', ''b'', ''a:1'', ''a:2'', ''a:1,2'', ''a:1,3'', ''a:1B,2'', ''a:1A'', ''a:1C'', ''a b'', ''a:1 b'', ''a b:1'', ''ab:1'', ''ab'', ''aé'', ''abcd:4A'', ''abcd:5'']) v
      UNION ALL SELECT to_tsvector(''simple'', string_agg(chr(97 + (i * k) % 7) || k, '' '')) FROM generate_series(1, 20) i, generate_series(1, 3) k GROUP BY i', false)
  UNION ALL SELECT checks.differences('tsquery', 'SELECT v::tsquery FROM unnest(ARRAY['''', ''a'', ''b'', ''!a'', ''!!a'', ''a & b'', ''b & a'', ''a | b'', ''a <-> b'', ''a <2> b'', ''a <3> b'', ''a:*'', ''a:A'', ''(a | b) & c'', ''a | b & c'', ''a <-> (b <2> c)'', ''(a <-> b) <2> c'', ''(a <-> b) <3> c'', ''!(a & b)'', ''ab'', ''é'']) v
      UNION ALL SELECT format(''%s %s %s %s !%s'', a, o, b, p, a)::tsquery FROM unnest(ARRAY[''a'', ''xy'']) a, unnest(ARRAY[''a'', ''b'']) b, unnest(ARRAY[''&'', ''|'', ''<->'', ''<4>'']) o, unnest(ARRAY[''&'', ''|'']) p', false)
  UNION ALL SELECT checks.differences('hstore', 'SELECT v::hstore FROM unnest(ARRAY['''', ''a=>b'', ''ab=>""'', ''a=>NULL'', ''a=>""'', ''b=>a'', ''a=>b, c=>d'', ''ab=>cd'', ''a=>bcd'', ''a=>bc, d=>NULL'', ''a=>bc, d=>""'', ''aé=>1'', ''a=>"b c"'']) v
      UNION ALL SELECT hstore(array_agg(k || i % 3), array_agg(NULLIF(i % 4, k::int)::text)) FROM generate_series(1, 24) i, unnest(ARRAY[''1'', ''2'', ''3'']) k GROUP BY i', false)
  UNION ALL SELECT checks.differences('ltree', 'SELECT v::ltree FROM unnest(ARRAY['''', ''a'', ''a.b'', ''ab'', ''a.a'', ''a.b.c'', ''A'', ''a1'', ''a_b'', ''Top.Science'', ''Top.Sci'', ''Top.Science.Astronomy'', ''b'']) v
      UNION ALL SELECT array_to_string(ARRAY[a.w, b.w, a.w], ''.'')::ltree FROM word a, word b WHERE a.w ~ ''^[a-z]'' AND b.w ~ ''^[a-z0-9]+$''', false)
  UNION ALL SELECT checks.differences('ltree[]', 'SELECT ARRAY[(a || ''.x'')::ltree, NULL, b::ltree] FROM unnest(ARRAY[''a'', ''b'', ''ab'']) a, unnest(ARRAY[''c'', ''c.d'', ''cd'']) b', true)
  UNION ALL SELECT checks.differences('cube', 'SELECT cube(ARRAY[a, b / 2.0], ARRAY[b / 3.0, a]) FROM generate_series(-3, 3) a, generate_series(-3, 3) b UNION ALL SELECT v::cube FROM unnest(ARRAY[''()'', ''(0)'', ''(-0)'', ''(0,0)'', ''(0),(0)'', ''(1),(2)'', ''(2),(1)'', ''(1,-1)'', ''(inf)'', ''(-inf,3)'', ''(1e300,1)'']) v', false)
  UNION ALL SELECT checks.differences('seg', 'SELECT v::seg FROM unnest(ARRAY[''1'', ''1.0'', ''1.00'', ''~1'', ''~1.0'', ''<1'', ''<1.0'', ''>1'', ''1 ..'', ''.. 1'', ''.. 1.0'', ''~1 .. ~2'', ''1 .. 2'', ''1 .. ~2'', ''1 .. 2.0'', ''1 .. <2'', ''1 .. >2'', ''<1 .. 2'', ''>1 .. 2'', ''-1 .. 1'', ''-0.0'', ''0'', ''0(+-)1'', ''1e10'', ''1.234567'', ''>1.0 .. <2'']) v
      UNION ALL SELECT format(''%s%s .. %s%s'', m, a, n, a + b)::seg FROM unnest(ARRAY['''', ''<'', ''~'', ''>'']) m, unnest(ARRAY['''', ''<'', ''~'', ''>'']) n, unnest(ARRAY[1, 1.5]) a, unnest(ARRAY[1, 1.0]) b', false)
  UNION ALL SELECT checks.differences('isbn', 'SELECT (''978'' || lpad((i % 25 * 7919003)::text, 9, ''0'') || ''?'')::isbn FROM generate_series(1, 30) i', false)
  UNION ALL SELECT checks.differences('ean13', 'SELECT (lpad((i % 25 * 79190031999)::text, 12, ''0'') || ''?'')::ean13 FROM generate_series(1, 30) i', false)
  UNION ALL SELECT checks.differences('checks.typed', 'SELECT ROW(v::text::seg, (''a.b'' || v)::ltree, hstore(v::text, NULL), to_tsvector(''simple'', repeat(''b'', v % 3) || '' a''), cube(v), upper(repeat(''b'', v % 3)))::checks.typed FROM generate_series(1, 30) v', false);
END $$;
SELECT string_agg(pg_get_functiondef(oid), ';' ORDER BY oid) AS functions FROM pg_proc WHERE pronamespace = 'checks'::regnamespace \gset
\set here :DBNAME
\set ECHO none
CREATE DATABASE mot_types_c_utf8 TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8';
CREATE DATABASE mot_types_libc TEMPLATE template0 ENCODING 'UTF8' LOCALE 'en_US.UTF-8';
CREATE DATABASE mot_types_icu TEMPLATE template0 ENCODING 'UTF8' LOCALE 'en_US.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US';
\c mot_types_c_utf8
SET client_min_messages = warning;
CREATE EXTENSION mot;
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE EXTENSION cube;
CREATE EXTENSION seg;
CREATE EXTENSION isn;
CREATE SCHEMA checks;
:functions;
SELECT checks.jsonb();
SELECT checks.computed();
SELECT checks.rows();
SELECT checks.extensions();
SELECT checks.citext();
SELECT checks.emails();
SELECT rows > 0 FROM unnest(ARRAY['t', 'u', 'child', 'c', 'e']) t, mot.check(('on_mot_' || t)::regclass);
\c mot_types_libc
SET client_min_messages = warning;
CREATE EXTENSION mot;
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE EXTENSION cube;
CREATE EXTENSION seg;
CREATE EXTENSION isn;
CREATE SCHEMA checks;
:functions;
SELECT checks.jsonb();
SELECT checks.computed();
SELECT checks.rows();
SELECT checks.extensions();
SELECT checks.citext();
SELECT checks.emails();
SELECT rows > 0 FROM unnest(ARRAY['t', 'u', 'child', 'c', 'e']) t, mot.check(('on_mot_' || t)::regclass);
\c mot_types_icu
SET client_min_messages = warning;
CREATE EXTENSION mot;
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE EXTENSION cube;
CREATE EXTENSION seg;
CREATE EXTENSION isn;
CREATE SCHEMA checks;
:functions;
SELECT checks.jsonb();
SELECT checks.computed();
SELECT checks.rows();
SELECT checks.extensions();
SELECT checks.citext();
SELECT checks.emails();
SELECT rows > 0 FROM unnest(ARRAY['t', 'u', 'child', 'c', 'e']) t, mot.check(('on_mot_' || t)::regclass);
\c :here
DROP DATABASE mot_types_c_utf8;
DROP DATABASE mot_types_libc;
DROP DATABASE mot_types_icu;
SET client_min_messages = error;
DROP SCHEMA checks CASCADE;
DROP EXTENSION citext, hstore, ltree, cube, seg, isn;
