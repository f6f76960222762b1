-- Keys of types that users and extensions make: which are known, which have labels, and what has no
-- place in an order.
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on
CREATE SCHEMA known_types;
SET search_path = known_types;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET jit = off;
-- A type with the storage of another, and these functions: to read and write it, to compare it, and
-- of its operators.
CREATE FUNCTION make_type(name text, storage text, language text, comparison text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE op text; number int := 0;
BEGIN
  EXECUTE format('CREATE TYPE %1$s; CREATE FUNCTION %1$s_in(cstring) RETURNS %1$s LANGUAGE internal IMMUTABLE STRICT AS %5$L;
    CREATE FUNCTION %1$s_out(%1$s) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS %6$L;
    CREATE TYPE %1$s (INPUT = %1$s_in, OUTPUT = %1$s_out, LIKE = %2$s); CREATE CAST (%2$s AS %1$s) WITHOUT FUNCTION; CREATE CAST (%1$s AS %2$s) WITHOUT FUNCTION;
    CREATE FUNCTION %1$s_cmp(%1$s, %1$s) RETURNS int LANGUAGE %3$s IMMUTABLE STRICT AS %4$L', name, storage, language, comparison,
    storage || CASE storage WHEN 'numeric' THEN '_in' ELSE 'in' END, storage || CASE storage WHEN 'numeric' THEN '_out' ELSE 'out' END);
  FOREACH op IN ARRAY ARRAY['<', '<=', '=', '>=', '>'] LOOP
    EXECUTE format('CREATE FUNCTION %1$s_op%2$s(%1$s, %1$s) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS ''BEGIN RETURN %1$s_cmp($1, $2) %3$s 0; END'';
      CREATE OPERATOR %3$s (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %1$s_op%2$s%4$s)', name, number, op, CASE op WHEN '=' THEN ', MERGES' ELSE '' END);
    number := number + 1;
  END LOOP;
  EXECUTE format('CREATE OPERATOR CLASS %1$s_ops DEFAULT FOR TYPE %1$s USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 %1$s_cmp(%1$s, %1$s)', name);
END $$;
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  EXECUTE statement;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  -- While an index is made, core from 17 on finds types of pg_catalog alone without their schema.
  RETURN replace(format(E'%s: %s\n  detail: %s\n  hint: %s', SQLSTATE, SQLERRM, detail, hint), 'known_types.', '');
END $$;
SELECT make_type('number', 'int4', 'internal', 'btint4cmp');
SELECT make_type('long', 'int8', 'internal', 'btint8cmp');
SELECT make_type('exact', 'numeric', 'internal', 'numeric_cmp');
SELECT make_type('backward', 'int4', 'sql', 'SELECT -pg_catalog.btint4cmp($1::int4, $2::int4)');
SELECT make_type('cut', 'int8', 'internal', 'btint4cmp');
CREATE TYPE three AS (n number, b backward);
CREATE TYPE three_ranges AS RANGE (subtype = backward);
CREATE DOMAIN few AS backward;
SELECT t || ': ' || try(format('CREATE TABLE t_%s (v %s PRIMARY KEY, n int) USING mot', translate(t, '[]', 's'), t))
FROM unnest(ARRAY['number', 'long', 'exact', 'number[]', 'backward', 'few', 'backward[]', 'three', 'three[]', 'three_ranges', 'cut', 'point']) t;
SELECT c.relname || ': ' || mot.index_key_kinds(c.oid)::text FROM pg_class c WHERE relnamespace = 'known_types'::regnamespace AND relkind = 'i' ORDER BY 1;
CREATE OPERATOR CLASS backward_numbers FOR TYPE int4 USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 backward_cmp(backward, backward);
CREATE TYPE plain AS (n int, t text);
CREATE TABLE o (n int, r plain) USING mot;
SELECT i || ': ' || try(i) FROM unnest(ARRAY['CREATE INDEX ON o (n backward_numbers)', 'CREATE INDEX ON o (r record_image_ops)', 'CREATE INDEX ON o ((n::backward))']) i;
-- Order and equality of the types that are known
INSERT INTO t_number SELECT (n * 7919 % 31 - 15)::number, n FROM generate_series(1, 31) n;
INSERT INTO t_long SELECT v::int4::int8::long, n FROM t_number;
INSERT INTO t_exact SELECT v::int4::numeric::exact, n FROM t_number;
EXPLAIN (COSTS OFF) SELECT n FROM t_number WHERE v > '3' ORDER BY v;
SELECT string_agg(v::text, ' ') FROM (SELECT v FROM t_number WHERE v > '3' ORDER BY v) s;
SELECT string_agg(v::text, ' ') FROM (SELECT v FROM t_long WHERE v BETWEEN '-5' AND '5' ORDER BY v DESC) s;
SELECT string_agg(v::text, ' ') FROM (SELECT v FROM t_exact WHERE v < '-9.5' ORDER BY v) s;
SELECT v, n FROM t_exact WHERE v = '3.00';
INSERT INTO t_exact VALUES ('3.000', 0);
-- An operator of a family says what it likes of two types
CREATE FUNCTION less_by_ten(number, int4) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1::int4 < $2 - 10; END';
CREATE FUNCTION equal_by_ten(number, int4) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN $1::int4 = $2 - 10; END';
CREATE FUNCTION number_int4_cmp(number, int4) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT pg_catalog.btint4cmp($1::int4, $2 - 10)';
CREATE OPERATOR < (LEFTARG = number, RIGHTARG = int4, FUNCTION = less_by_ten);
CREATE OPERATOR = (LEFTARG = number, RIGHTARG = int4, FUNCTION = equal_by_ten);
ALTER OPERATOR FAMILY number_ops USING btree ADD OPERATOR 1 < (number, int4), OPERATOR 3 = (number, int4), FUNCTION 1 (number, int4) number_int4_cmp(number, int4);
SELECT string_agg(v::text, ' ') FROM (SELECT v FROM t_number WHERE v < -2 ORDER BY v) s;
SELECT v FROM t_number WHERE v = 5;
-- Cubes with coordinates that are no numbers
CREATE EXTENSION cube;
CREATE TABLE c (id int PRIMARY KEY, v cube UNIQUE) USING mot;
INSERT INTO c VALUES (1, '(1,2)'), (2, '(1)'), (3, '(2),(1)');
SELECT try($$INSERT INTO c VALUES (4, '(NaN)')$$);
SELECT try($$SELECT id FROM c WHERE v = '(1,NaN)'$$);
INSERT INTO c VALUES (5, '(1),(2)');
SELECT id FROM c WHERE v = '(1),(2)';
SELECT id FROM c WHERE v > '(1)' ORDER BY v;
CREATE TABLE d (id int PRIMARY KEY, v cube) USING mot;
INSERT INTO d VALUES (1, '(NaN)'), (2, '(5)');
SELECT try('CREATE INDEX ON d (v)');
CREATE INDEX ON d (v) WHERE id > 1;
UPDATE d SET v = '(3)' WHERE id = 1;
CREATE INDEX ON d (v);
SELECT id FROM d WHERE v = '(3)';
-- A type that is compared with another one as with itself, and not as the other one is.
CREATE TYPE moment;
CREATE FUNCTION moment_in(cstring) RETURNS moment LANGUAGE internal IMMUTABLE STRICT AS 'int8in';
CREATE FUNCTION moment_out(moment) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int8out';
CREATE TYPE moment (INPUT = moment_in, OUTPUT = moment_out, LIKE = int8);
DO $$ DECLARE op text; name text; other text; BEGIN
  FOREACH other IN ARRAY ARRAY['moment', 'timestamptz'] LOOP
    EXECUTE format('CREATE FUNCTION moment_cmp(moment, %s) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS ''timestamp_cmp''', other);
    FOR op, name IN VALUES ('<', 'lt'), ('<=', 'le'), ('=', 'eq'), ('>=', 'ge'), ('>', 'gt') LOOP
      EXECUTE format('CREATE FUNCTION moment_%1$s(moment, %2$s) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS ''timestamp_%1$s'';
        CREATE OPERATOR %3$s (LEFTARG = moment, RIGHTARG = %2$s, FUNCTION = moment_%1$s)', name, other, op);
    END LOOP;
  END LOOP;
END $$;
CREATE OPERATOR CLASS moment_ops DEFAULT FOR TYPE moment USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 moment_cmp(moment, moment),
  OPERATOR 1 < (moment, timestamptz), OPERATOR 2 <= (moment, timestamptz), OPERATOR 3 = (moment, timestamptz), OPERATOR 4 >= (moment, timestamptz), OPERATOR 5 > (moment, timestamptz),
  FUNCTION 1 (moment, timestamptz) moment_cmp(moment, timestamptz);
CREATE TABLE moments (n int, v moment) USING mot;
CREATE INDEX ON moments (v);
INSERT INTO moments SELECT n, (n * 1000000)::text::moment FROM generate_series(-5, 5) n;
SELECT string_agg(n::text, ' ' ORDER BY n) FROM moments WHERE v = '2000-01-01 00:00:02+00'::timestamptz;
SELECT string_agg(n::text, ' ' ORDER BY n) FROM moments WHERE v < '2000-01-01 00:00:02+00'::timestamptz;
SELECT string_agg(n::text, ' ' ORDER BY n) FROM moments WHERE v >= '2000-01-01 00:00:02+00'::timestamptz AND v <= '2000-01-01 00:00:03+00'::timestamptz;
SELECT rows FROM unnest(ARRAY['t_number', 't_exact', 'c', 'd']) t, mot.check(t::regclass);
DROP SCHEMA known_types CASCADE;
