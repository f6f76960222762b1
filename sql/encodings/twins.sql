-- Included by encodings.sql and encodings_messages.sql with two words in the variables a and b; of errors it shows all texts if the variable texts says so, else the
-- code.
\set ECHO none
SET client_min_messages = error;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA twin;
CREATE TABLE twin.word AS SELECT :'a'::text AS a, :'b'::text AS b, :'texts'::bool AS texts;
SELECT format('CREATE SCHEMA %I', a || ' ' || kind) FROM twin.word, unnest(ARRAY['mot', 'heap']) kind \gexec
-- What a statement gives in one of the schemas.
CREATE FUNCTION twin.outcome(kind text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text := ''; n bigint := 0; r record; a text; b text; c text; d text; e text; f text;
BEGIN
  PERFORM set_config('search_path', quote_ident((SELECT w.a FROM twin.word w) || ' ' || kind), true),
          set_config('default_table_access_method', CASE kind WHEN 'mot' THEN 'mot' ELSE 'heap' END, true);
  IF statement ~* '^\s*(select|explain)|returning' THEN
    FOR r IN EXECUTE statement LOOP result := result || E'\n    ' || r::text; END LOOP;
    RETURN result;
  END IF;
  EXECUTE statement;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN CASE WHEN n > 0 THEN ' ' || n || ' rows' ELSE ' ok' END;
EXCEPTION WHEN others THEN
  GET STACKED DIAGNOSTICS a = RETURNED_SQLSTATE, b = MESSAGE_TEXT, c = PG_EXCEPTION_DETAIL, d = TABLE_NAME, e = COLUMN_NAME, f = CONSTRAINT_NAME;
  RETURN E'\n    ' || CASE WHEN (SELECT w.texts FROM twin.word w) THEN array_to_string(array_remove(ARRAY[a, b, c, d, e, f], ''), ' | ') ELSE a END;
END $$;
-- With a byte above 0x7F as \ooo where it could not be read.
CREATE FUNCTION twin.readable(said text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN getdatabaseencoding() = 'SQL_ASCII' OR (SELECT octet_length(a) = 4 FROM twin.word) THEN
    encode(convert_to(said, getdatabaseencoding()), 'escape') ELSE said END $$;
CREATE FUNCTION twin.written(statement text) RETURNS text LANGUAGE sql AS $$
  SELECT replace(replace(replace(statement, '{a}', a), '{b}', b), '{long}', repeat(a, 70)) FROM twin.word $$;
CREATE FUNCTION twin.same(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  mine text := twin.outcome('mot', twin.written(statement));
  heap text := twin.outcome('heap', twin.written(statement));
BEGIN
  RETURN twin.readable(statement || E'\n ->' || CASE WHEN mine = heap THEN mine ELSE ' DIFFERENT' || mine || E'\n heap:' || heap END);
END $$;
CREATE FUNCTION twin.mine(statement text) RETURNS text LANGUAGE sql AS $$
  SELECT twin.readable(statement || E'\n ->' || twin.outcome('mot', twin.written(statement))) $$;
\pset format unaligned
\pset tuples_only on

-- Keys of columns whose names differ in such characters alone.
SELECT twin.same('CREATE TABLE t ("{a}" int, "{b}" int, PRIMARY KEY ("{b}"))');
SELECT twin.same('INSERT INTO t VALUES (1, 7), (1, 8)');
SELECT twin.same('INSERT INTO t VALUES (2, 7)');
SELECT twin.same('INSERT INTO t ("{a}") VALUES (2)');
SELECT twin.same('CREATE TABLE u ("{a}" int, "{b}" int, UNIQUE ("{a}", "{b}"))');
SELECT twin.same('CREATE TABLE no ("{a}" int, "{b}" int, UNIQUE ("{b}", "{b}"))');
SELECT twin.same('CREATE TABLE "{a}{b}" (k int PRIMARY KEY, "{a}" varchar(10) NOT NULL CONSTRAINT "{b}" UNIQUE, "{b}" int CONSTRAINT "{a}" CHECK ("{b}" > 0))');
SELECT twin.same('CREATE INDEX ON "{a}{b}" ("{b}", "{a}")');
SELECT twin.same('CREATE INDEX ON t ("{a}", "{b}", "{a}")');
SELECT twin.same('CREATE INDEX "{b}{b}" ON t ("{a}")');
SELECT twin.same('CREATE INDEX ON t ("{a}{a}")');
-- Names that are cut, between two characters.
SELECT twin.same('CREATE TABLE long ("{long}" int, "{b}" int)');
SELECT twin.same('CREATE INDEX ON long ("{long}", "{b}", "{long}", "{long}")');
SELECT twin.same('ALTER TABLE long ADD UNIQUE ("{b}", "{long}")');

-- Values, and errors about them.
SELECT twin.same('INSERT INTO "{a}{b}" VALUES (1, ''{a}'', 1), (2, ''{b}{a}'', 2)');
SELECT twin.same('INSERT INTO "{a}{b}" VALUES (3, ''{a}'', 3)');
SELECT twin.same('INSERT INTO "{a}{b}" VALUES (3, ''3'', 0)');
SELECT twin.same('INSERT INTO "{a}{b}" VALUES (3, NULL, 3)');
SELECT twin.same('INSERT INTO "{a}{b}" VALUES (3, ''{a}'', 3) ON CONFLICT ON CONSTRAINT "{b}" DO UPDATE SET "{b}" = 5 RETURNING *');
SELECT twin.same('UPDATE "{a}{b}" SET "{a}" = ''{a}'' WHERE k = 2');
SELECT twin.same('SELECT * FROM "{a}{b}" WHERE "{a}" = ''{b}{a}''');
SELECT twin.same('SELECT * FROM "{a}{b}" WHERE "{a}" LIKE ''{b}%''');
SELECT twin.same('SELECT * FROM "{a}{b}" WHERE "{a}" LIKE ''_''');
SELECT twin.same('SELECT "{a}" FROM "{a}{b}" ORDER BY "{a}"');
SELECT twin.same('CREATE TABLE w ("{a}" text, "{b}" text)');
SELECT twin.same('INSERT INTO w VALUES (''{a}'', ''{b}''), (''{a}'', ''{a}'')');
SELECT twin.same('CREATE UNIQUE INDEX ON w ("{a}")');
SELECT twin.same('CREATE TABLE copied ("{b}{b}") AS SELECT "{a}", "{b}" FROM w');
SELECT twin.same('SELECT * FROM copied ORDER BY 1, 2');

-- ALTER TABLE.
SELECT twin.same('ALTER TABLE w ADD COLUMN "{a}{b}" text NOT NULL DEFAULT ''{b}''');
SELECT twin.same('ALTER TABLE w ADD COLUMN "{b}{a}" text GENERATED ALWAYS AS ("{b}" || ''{a}'') STORED');
SELECT twin.same('SELECT * FROM w ORDER BY "{b}"');
SELECT twin.same('ALTER TABLE w ADD CONSTRAINT "{a}" CHECK ("{a}" <> ''{a}'')');
SELECT twin.same('ALTER TABLE w ADD CONSTRAINT "{a}" CHECK ("{a}" <> ''{b}'')');
SELECT twin.same('ALTER TABLE w ADD COLUMN z int CHECK (z > 0)');
SELECT twin.same('ALTER TABLE w ADD CONSTRAINT "{b}" CHECK ("{b}" <> ''{a}'') NOT VALID');
SELECT twin.same('ALTER TABLE w VALIDATE CONSTRAINT "{b}"');
SELECT twin.same('UPDATE w SET "{b}" = ''{b}{b}'' WHERE "{b}" = ''{a}''');
SELECT twin.same('DELETE FROM w WHERE "{b}" = ''{a}''');
SELECT twin.same('ALTER TABLE w VALIDATE CONSTRAINT "{b}"');
SELECT twin.same('ALTER TABLE w ADD PRIMARY KEY ("{b}")');
SELECT twin.same('INSERT INTO w ("{b}") VALUES (''{b}'')');
SELECT twin.same('INSERT INTO w ("{b}") VALUES (''?'')');
SELECT twin.same('ALTER TABLE w ALTER COLUMN "{a}" SET NOT NULL');
SELECT twin.same('DELETE FROM w WHERE "{b}" = ''?''');
SELECT twin.same('ALTER TABLE w ALTER COLUMN "{a}" SET NOT NULL');
SELECT twin.same('ALTER TABLE w ADD PRIMARY KEY ("{b}")');
SELECT twin.same('ALTER TABLE w ADD UNIQUE ("{b}{a}", "{b}")');
SELECT twin.same('ALTER TABLE w DROP CONSTRAINT "{b}"');
SELECT twin.same('ALTER TABLE "{a}{b}" ALTER COLUMN "{a}" TYPE varchar(20)');
SELECT twin.same('CREATE UNIQUE INDEX "{a}1" ON t ("{a}", "{b}")');
SELECT twin.same('ALTER TABLE t ADD CONSTRAINT "{b}1" UNIQUE USING INDEX "{a}9"');
SELECT twin.same('ALTER TABLE t ADD CONSTRAINT "{b}1" UNIQUE USING INDEX "{a}1"');
SELECT twin.same('ALTER TABLE t RENAME COLUMN "{a}" TO "{a}2"');
SELECT twin.mine('ALTER TABLE w ALTER COLUMN "{b}" TYPE char(20)');

-- Domains.
SELECT twin.same('CREATE DOMAIN "{a}" AS text');
SELECT twin.same('CREATE TABLE d (k int, "{b}" "{a}")');
SELECT twin.same('INSERT INTO d VALUES (1, ''{a}''), (2, NULL)');
SELECT twin.same('ALTER DOMAIN "{a}" ADD CONSTRAINT "{b}" CHECK (VALUE <> ''{a}'')');
SELECT twin.same('ALTER DOMAIN "{a}" ADD CONSTRAINT "{b}" CHECK (VALUE <> ''{b}'')');
SELECT twin.same('ALTER DOMAIN "{a}" SET NOT NULL');
SELECT twin.same('INSERT INTO d VALUES (3, ''{b}'')');
SELECT twin.same('ALTER TABLE d ADD COLUMN "{a}s" "{a}"[]');
SELECT twin.same('UPDATE d SET "{a}s" = ARRAY[''{a}'']');
SELECT twin.same('ALTER DOMAIN "{a}" ADD CHECK (VALUE <> ''{a}{b}'')');

-- Partitions.
SELECT twin.same('CREATE TABLE p ("{a}" text) PARTITION BY LIST ("{a}")');
SELECT twin.same('CREATE TABLE "{b}p" ("{a}" text)');
SELECT twin.same('INSERT INTO "{b}p" VALUES (''{b}'')');
SELECT twin.same('ALTER TABLE p ATTACH PARTITION "{b}p" FOR VALUES IN (''{a}'')');
SELECT twin.same('UPDATE "{b}p" SET "{a}" = ''{a}''');
SELECT twin.same('ALTER TABLE p ATTACH PARTITION "{b}p" FOR VALUES IN (''{a}'')');
SELECT twin.same('CREATE TABLE "{b}d" ("{a}" text)');
SELECT twin.same('ALTER TABLE p ATTACH PARTITION "{b}d" DEFAULT');
SELECT twin.same('INSERT INTO p VALUES (''{a}''), (''{b}'')');
SELECT twin.same('CREATE TABLE "{b}n" PARTITION OF p FOR VALUES IN (''{b}'')');
SELECT twin.same('SELECT tableoid::regclass, * FROM p ORDER BY 2');
SELECT twin.same('SELECT * FROM p WHERE "{a}" = ''{b}''');

-- Cursors.
SELECT twin.same('DO $d$ DECLARE c refcursor := ''{a}''; r record; BEGIN OPEN c FOR SELECT * FROM t; FETCH c INTO r; UPDATE t SET "{a}2" = 99 WHERE CURRENT OF c; CLOSE c; END $d$');
SELECT twin.same('SELECT * FROM t ORDER BY 2');

-- What the catalog has in the end, byte by byte.
SELECT twin.same($$SELECT t.relname, i.relname, x.indisprimary, x.indkey,
  (SELECT string_agg(a.attname, ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = i.oid),
  (SELECT string_agg(a.attname, ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum = ANY (x.indkey)),
  (SELECT c.conname FROM pg_constraint c WHERE c.conindid = i.oid AND c.contype IN ('p', 'u'))
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
  WHERE t.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema()) ORDER BY t.relname COLLATE "C", i.relname COLLATE "C"$$);
SELECT twin.same($$SELECT encode(convert_to(i.relname, getdatabaseencoding()), 'hex') FROM pg_class i WHERE i.relkind IN ('i', 'I')
  AND i.relnamespace = (SELECT n.oid FROM pg_namespace n WHERE n.nspname = current_schema()) ORDER BY 1$$);
SELECT count(*) FROM pg_class c, mot.check(c.oid) WHERE c.relkind = 'r' AND c.relnamespace = (SELECT n.oid FROM pg_namespace n, twin.word WHERE n.nspname = a || ' mot');

-- What twins cannot say.
SELECT twin.mine('CREATE TABLE e ("{a}" int, "{b}" text PRIMARY KEY)');
SELECT twin.mine('INSERT INTO e SELECT i, ''{b}'' || i FROM generate_series(1, 1000) i');
SELECT twin.mine('EXPLAIN (COSTS OFF) SELECT * FROM e WHERE "{b}" = ''{b}7''');

-- Errors of functions, whose texts pgrx makes UTF-8.
\if :texts
\else
SELECT twin.same('DO $d$ DECLARE c refcursor := ''{a}''; BEGIN OPEN c FOR SELECT * FROM t; UPDATE t SET "{a}2" = 99 WHERE CURRENT OF c; END $d$');
SELECT twin.same('DO $d$ DECLARE c refcursor := ''{a}''; r record; BEGIN OPEN c FOR SELECT * FROM t; FETCH c INTO r; DELETE FROM d WHERE CURRENT OF c; END $d$');
SELECT twin.mine('CREATE FOREIGN TABLE no ("{a}" int) SERVER mot OPTIONS ("{b}" ''1'')');
\endif
-- COPY, read by cat.
SELECT format('COPY %I.w TO STDOUT', a || ' heap') AS heap, format('COPY %I.w TO STDOUT', a || ' mot') AS mine FROM twin.word \gset
:heap \g |LC_ALL=C cat -v
:mine \g |LC_ALL=C cat -v
\pset tuples_only off
\pset format aligned
