-- As whom an index's expression is evaluated where values have labels: a scan looks for its
-- argument among the values of other rows (mot_ext/src/storage/labels/values.rs).
\set VERBOSITY terse
CREATE ROLE mot_label_owner;
CREATE ROLE mot_label_user;
CREATE SCHEMA label_shop AUTHORIZATION mot_label_owner;
GRANT USAGE ON SCHEMA label_shop TO mot_label_user;
CREATE SCHEMA label_trap AUTHORIZATION mot_label_user;
GRANT USAGE ON SCHEMA label_trap TO mot_label_owner;
CREATE FUNCTION label_shop.abs_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN pg_catalog.btint4cmp(abs($1), abs($2)); END $$;
CREATE FUNCTION label_shop.abs_lt(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN abs($1) < abs($2); END $$;
CREATE FUNCTION label_shop.abs_eq(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN abs($1) = abs($2); END $$;
CREATE OPERATOR label_shop.<# (LEFTARG = int, RIGHTARG = int, PROCEDURE = label_shop.abs_lt);
CREATE OPERATOR label_shop.=# (LEFTARG = int, RIGHTARG = int, PROCEDURE = label_shop.abs_eq);
CREATE OPERATOR CLASS label_shop.abs_ops FOR TYPE int USING btree AS OPERATOR 1 label_shop.<#, OPERATOR 3 label_shop.=#, FUNCTION 1 label_shop.abs_cmp(int, int);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET jit = off;
SET default_table_access_method = mot;

SET ROLE mot_label_owner;
CREATE FUNCTION label_shop.size(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN length(t); END $$;
CREATE TABLE label_shop.things (id int PRIMARY KEY, t text);
CREATE INDEX things_size ON label_shop.things (label_shop.size(t) label_shop.abs_ops);
INSERT INTO label_shop.things SELECT i, repeat('x', i) FROM generate_series(1, 100) i;
GRANT SELECT, INSERT ON label_shop.things TO mot_label_user;

-- Who reads, with a search_path of his own, cannot make the owner call a function of his.
SET ROLE mot_label_user;
CREATE FUNCTION label_trap.length(t text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  IF current_user <> 'mot_label_user' THEN RAISE EXCEPTION 'called as %', current_user; END IF;
  RETURN pg_catalog.length(t);
END $$;
SET search_path = label_trap, pg_catalog;
EXPLAIN (COSTS OFF) SELECT id FROM label_shop.things WHERE label_shop.size(t) OPERATOR(label_shop.=#) 7;
SELECT id FROM label_shop.things WHERE label_shop.size(t) OPERATOR(label_shop.=#) 7;
SELECT current_user, current_setting('search_path');
-- Nor can who writes.
INSERT INTO label_shop.things VALUES (101, repeat('y', 7));
SELECT id FROM label_shop.things WHERE label_shop.size(t) OPERATOR(label_shop.=#) 7 ORDER BY id;
RESET search_path;
RESET ROLE;

-- Functions that the search_path of who calls them finds.
SET ROLE mot_label_owner;
SET search_path = label_shop, pg_catalog;
CREATE FUNCTION extent(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN length(t); END $$;
CREATE FUNCTION doubled(t text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN 2 * extent(t); END $$;
CREATE TABLE pairs (id int PRIMARY KEY, t text);
CREATE INDEX pairs_doubled ON pairs (doubled(t) abs_ops);
INSERT INTO pairs SELECT i, repeat('x', i) FROM generate_series(1, 100) i;
GRANT SELECT, INSERT ON pairs TO mot_label_user;
SELECT id FROM pairs WHERE doubled(t) =# 14;
SET ROLE mot_label_user;
INSERT INTO pairs VALUES (101, repeat('y', 7));
SELECT id FROM pairs WHERE doubled(t) =# 14 ORDER BY id;
RESET ROLE;
SELECT id FROM pairs WHERE doubled(t) =# 14 ORDER BY id;
SELECT rows FROM mot.check('pairs');
RESET search_path;
SELECT rows FROM mot.check('label_shop.things');

-- Only the expression that is asked for is evaluated.
SET ROLE mot_label_owner;
SET search_path = label_shop, pg_catalog;
CREATE FUNCTION secret(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x + 1; END $$;
REVOKE EXECUTE ON FUNCTION secret(int) FROM PUBLIC;
CREATE TABLE pair (id int, t text, x int);
CREATE INDEX ON pair (size(t) abs_ops, secret(x));
INSERT INTO pair SELECT i, repeat('x', i), i FROM generate_series(1, 100) i;
GRANT SELECT (id, t) ON pair TO mot_label_user;
SET ROLE mot_label_user;
EXPLAIN (COSTS OFF) SELECT id FROM pair WHERE size(t) =# 7;
SELECT id FROM pair WHERE size(t) =# 7;
-- Who may not read rows is not shown them by functions found by a search_path of his own.
SET ROLE mot_label_owner;
RESET search_path;
REVOKE SELECT ON label_shop.things FROM mot_label_user;
SET ROLE mot_label_user;
CREATE OR REPLACE FUNCTION label_trap.length(t text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% measures %', current_user, t;
  RETURN pg_catalog.length(t);
END $$;
SET search_path = label_trap, pg_catalog;
INSERT INTO label_shop.things VALUES (102, 'abc');
SELECT current_user, current_setting('search_path');
RESET search_path;
SET ROLE mot_label_owner;
GRANT SELECT ON label_shop.things TO mot_label_user;
ALTER TABLE label_shop.things ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON label_shop.things FOR SELECT TO mot_label_user USING (id > 100);
CREATE POLICY all_new ON label_shop.things FOR INSERT TO mot_label_user WITH CHECK (true);
SET ROLE mot_label_user;
SET search_path = label_trap, pg_catalog;
INSERT INTO label_shop.things VALUES (103, 'defgh');
RESET search_path;
RESET ROLE;
SELECT id FROM label_shop.things WHERE label_shop.size(t) OPERATOR(label_shop.=#) 3 ORDER BY id;
SELECT rows FROM mot.check('label_shop.things');
-- The owner is shown all rows, and finds the functions by the search_path of the session.
ALTER TABLE label_shop.pairs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY none_seen ON label_shop.pairs FOR SELECT USING (false);
CREATE POLICY all_new ON label_shop.pairs FOR INSERT WITH CHECK (true);
SET ROLE mot_label_owner;
SET search_path = label_shop, pg_catalog;
INSERT INTO pairs VALUES (104, 'abc');
RESET ROLE;
SELECT rows FROM mot.check('pairs');
RESET search_path;
SET client_min_messages = warning;
DROP SCHEMA label_shop, label_trap CASCADE;
DROP ROLE mot_label_owner, mot_label_user;
