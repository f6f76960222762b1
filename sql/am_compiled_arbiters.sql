-- INSERT ... ON CONFLICT that asks several unique indexes: compiled, and as on heap tables.
\getenv top PG_ABS_SRCDIR
\cd :top
\set helpers 'sql/forms/on_both.sql'
\set started :ECHO
\set ECHO none
\i :helpers
\set ECHO :started
SET mot.compiled_statements = always;
SET jit = off;
CREATE FUNCTION forms() RETURNS bigint LANGUAGE sql AS
  $$SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'mot compiled statement'$$;
-- How often each index of the schema was asked in this transaction, and what it found.
CREATE FUNCTION asked() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s %s %s', relname, pg_stat_get_xact_numscans(oid), pg_stat_get_xact_tuples_fetched(oid)), ', ' ORDER BY relname)
  FROM pg_class WHERE relkind = 'i' AND relnamespace = current_schema::regnamespace $$;
CREATE FUNCTION make() RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  CREATE TABLE person (id int PRIMARY KEY, mail text, nick text UNIQUE, age int);
  CREATE UNIQUE INDEX person_mail ON person (lower(mail));
  CREATE UNIQUE INDEX person_age ON person (age) WHERE age > 10;
  CREATE INDEX person_old ON person (age);
  CREATE TABLE twice (a int, b int);
  CREATE UNIQUE INDEX twice_1 ON twice (a);
  CREATE UNIQUE INDEX twice_2 ON twice (a);
  CREATE TABLE free (a int);
  CREATE TABLE later (a int PRIMARY KEY, b int UNIQUE DEFERRABLE);
  CREATE FUNCTION put(int, text, text, int) RETURNS text LANGUAGE plpgsql AS
    'DECLARE made text; BEGIN INSERT INTO person VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING id || '' '' || coalesce(mail, '''') INTO made; RETURN made; END';
  CREATE FUNCTION put_twice(int, int) RETURNS text LANGUAGE plpgsql AS
    'DECLARE made text; BEGIN INSERT INTO twice AS t VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = t.b + EXCLUDED.b RETURNING t.a || '' '' || t.b INTO made; RETURN made; END';
  CREATE FUNCTION put_free(int) RETURNS bigint LANGUAGE plpgsql AS
    'DECLARE n bigint; BEGIN INSERT INTO free VALUES ($1) ON CONFLICT DO NOTHING; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END';
  CREATE FUNCTION put_later(int, int) RETURNS bigint LANGUAGE plpgsql AS
    'DECLARE n bigint; BEGIN INSERT INTO later VALUES ($1, $2) ON CONFLICT DO NOTHING; GET DIAGNOSTICS n = ROW_COUNT; RETURN n; END';
END $f$;
SELECT on_both('SELECT make()');
-- that they are compiled
SET search_path = on_mot, ordered;
SELECT forms() \gset
BEGIN;
SELECT put(1, 'A', 'a', 1), put_twice(1, 1), put_free(1);
SELECT forms() - :forms >= 3 AS compiled;
ROLLBACK;
SET search_path = ordered;
-- a conflict by each index, and by none
SELECT on_both($$SELECT put(1, 'Ann', 'a', 11), put(2, 'Bob', 'b', 12), put(3, NULL, NULL, NULL), put(4, NULL, NULL, 1)$$);
SELECT on_both($$SELECT put(1, 'x', 'x', 99)$$);
SELECT on_both($$SELECT put(5, 'ANN', 'x', 99)$$);
SELECT on_both($$SELECT put(5, 'x', 'b', 99)$$);
SELECT on_both($$SELECT put(5, 'x', 'x', 12)$$);
SELECT on_both($$SELECT put(5, 'x', 'x', 1)$$);
SELECT on_both($$SELECT put(6, NULL, NULL, NULL), put(6, NULL, NULL, NULL)$$);
SELECT on_both('SELECT * FROM person ORDER BY id');
-- a row that the same transaction has deleted is in nobody's way
SELECT on_both($$WITH gone AS (DELETE FROM person WHERE id = 1 RETURNING id) SELECT count(*) FROM gone$$);
SELECT on_both($$SELECT put(7, 'ann', 'a', 11)$$);
-- computing a key may raise: that of an index behind a conflict is not computed
SELECT on_both($$CREATE TABLE ratio (id int PRIMARY KEY, n int, m int)$$);
SELECT on_both($$CREATE UNIQUE INDEX ratio_n ON ratio ((10 / n))$$);
SELECT on_both($$CREATE UNIQUE INDEX ratio_m ON ratio (m) WHERE 10 / m > 0$$);
SELECT on_both($$CREATE FUNCTION put_ratio(int, int, int) RETURNS bigint LANGUAGE plpgsql AS
  'DECLARE made bigint; BEGIN INSERT INTO ratio VALUES ($1, $2, $3) ON CONFLICT DO NOTHING; GET DIAGNOSTICS made = ROW_COUNT; RETURN made; END'$$);
SELECT on_both($$CREATE FUNCTION put_over(int, int, int) RETURNS bigint LANGUAGE plpgsql AS
  'DECLARE made bigint; BEGIN INSERT INTO ratio AS r VALUES ($1, $2, $3) ON CONFLICT ((10 / n)) DO UPDATE SET m = r.m + 1; GET DIAGNOSTICS made = ROW_COUNT; RETURN made; END'$$);
SELECT on_both('SELECT put_ratio(1, 1, 1), put_ratio(1, 0, 0), put_ratio(2, 1, 0)');
SELECT on_both('SELECT put_ratio(2, 0, 5)');
SELECT on_both('SELECT put_ratio(2, 2, 0)');
SELECT on_both('SELECT put_over(3, 1, 0)');
SELECT on_both('SELECT put_over(3, 0, 1)');
SELECT on_both('SELECT put_over(3, 3, 0)');
SELECT on_both('SELECT put_over(3, 3, 3)');
SELECT on_both('SELECT * FROM ratio ORDER BY id');
-- what it counts
SELECT pg_stat_force_next_flush();
BEGIN;
SELECT on_both($$SELECT put(8, 'New', 'n', 50), put(1, 'bob', 'q', 60), put(9, 'NEW', 'q', 61)$$);
SELECT on_both($$SELECT string_agg(a, ', ') FROM unnest(string_to_array(asked(), ', ')) a WHERE a !~ 'ratio'$$);
COMMIT;
-- two indexes of the same column
SELECT on_both('SELECT put_twice(1, 1), put_twice(1, 10), put_twice(2, 5), put_twice(NULL, 6), put_twice(NULL, 7)');
SELECT on_both('SELECT * FROM twice ORDER BY a, b');
-- no index, and one that is checked later
SELECT on_both('SELECT put_free(1), put_free(1)');
SELECT on_both('SELECT put_later(1, 1)');
-- indexes come, change and go between two executions
SELECT on_both('CREATE UNIQUE INDEX free_a ON free (a) WHERE a > 1');
SELECT on_both('SELECT put_free(1), put_free(2), put_free(2)');
SELECT on_both('REINDEX TABLE person');
SELECT on_both($$SELECT put(10, 'AnN', 'x', 70), put(10, 'Zoe', 'z', 71)$$);
SELECT on_both('DROP INDEX person_mail');
SELECT on_both($$SELECT put(11, 'zoe', 'z', 72), put(11, 'zoe', 'y', 72)$$);
SELECT on_both('CLUSTER person USING person_pkey');
SELECT on_both('DROP INDEX twice_1');
SELECT on_both('SELECT put_twice(1, 100)');
SELECT on_both('ALTER TABLE person ADD UNIQUE (age, nick)');
SELECT on_both($$SELECT put(12, 'm', 'w', 5), put(13, 'n', 'w', 5)$$);
SELECT on_both('SELECT * FROM person ORDER BY id');
SELECT mot.check('on_mot.person') IS NOT NULL, mot.check('on_mot.twice') IS NOT NULL, mot.check('on_mot.free') IS NOT NULL;
SET client_min_messages = error;
DROP SCHEMA ordered, on_heap, on_mot CASCADE;
