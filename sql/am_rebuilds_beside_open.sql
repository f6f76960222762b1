-- Index builds beside what a transaction still has to do with its rows: deferred checks, open
-- cursors, tuple ids that it has read. Builds of heap's indexes change no rows, and no change is
-- to be seen here.
CREATE SCHEMA rb;
SET search_path = rb, public;
CREATE FUNCTION rb_compare(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT sign($2 - $1)::int';
CREATE FUNCTION rb_less(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 > $2';
CREATE FUNCTION rb_less_equal(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 >= $2';
CREATE FUNCTION rb_equal(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 = $2';
CREATE FUNCTION rb_greater_equal(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 <= $2';
CREATE FUNCTION rb_greater(int, int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT $1 < $2';
CREATE OPERATOR <# (FUNCTION = rb_less, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR <=# (FUNCTION = rb_less_equal, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR =# (FUNCTION = rb_equal, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR >=# (FUNCTION = rb_greater_equal, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR ># (FUNCTION = rb_greater, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR CLASS rb_reverse FOR TYPE int USING btree AS
    OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#,
    FUNCTION 1 rb_compare(int, int);
CREATE TABLE rb_parent (id int PRIMARY KEY) USING mot;
CREATE TABLE rb_child (
    id int PRIMARY KEY,
    parent int REFERENCES rb_parent DEFERRABLE INITIALLY DEFERRED,
    v int
) USING mot;
CREATE INDEX rb_child_v ON rb_child (v rb_reverse);
INSERT INTO rb_parent VALUES (1);
INSERT INTO rb_child VALUES (1, 1, 1), (2, 1, 2);

-- A deferred check finds the row that it is about.
BEGIN;
INSERT INTO rb_child VALUES (3, 999, 5);
REINDEX TABLE rb_child;
COMMIT;
BEGIN;
UPDATE rb_child SET parent = 999 WHERE id = 1;
REINDEX INDEX rb_child_v;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
-- So does an open cursor, also behind a savepoint that goes.
BEGIN;
UPDATE rb_child SET v = v + 10;
DECLARE c CURSOR FOR SELECT id, v FROM rb_child FOR UPDATE;
FETCH 1 c;
SAVEPOINT s;
REINDEX INDEX rb_child_v;
ROLLBACK TO s;
REINDEX INDEX rb_child_v;
UPDATE rb_child SET v = v + 10 WHERE CURRENT OF c;
FETCH ALL c;
SELECT id, v FROM rb_child WHERE v <# 11 ORDER BY id;
COMMIT;
SELECT * FROM rb_child ORDER BY id;

-- A new index keeps the tuple ids of the transaction's rows.
CREATE TABLE rb_ids (a int, t text) USING mot;
BEGIN;
INSERT INTO rb_ids VALUES (1, 'one');
CREATE TEMP TABLE rb_id AS SELECT ctid AS id FROM rb_ids;
CREATE INDEX ON rb_ids (upper(t));
UPDATE rb_ids SET a = 2 WHERE ctid = (SELECT id FROM rb_id) RETURNING a, t;
COMMIT;
SELECT a FROM rb_ids WHERE upper(t) = 'ONE';
DROP TABLE rb_id;

-- A table whose rows a cursor reads does not get another file.
CREATE TABLE rb_moved (id int PRIMARY KEY) USING mot;
INSERT INTO rb_moved SELECT generate_series(1, 6);
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE rb_space LOCATION '';
ALTER TABLE rb_moved SET TABLESPACE rb_space;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM rb_moved;
FETCH 1 c;
ALTER TABLE ALL IN TABLESPACE rb_space SET TABLESPACE pg_default;
ROLLBACK;
ALTER TABLE ALL IN TABLESPACE rb_space SET TABLESPACE pg_default;
DROP TABLESPACE rb_space;
SELECT count(*) FROM rb_moved;

-- A type that is compared by functions loses a column in which values differed.
CREATE TYPE rb_inner AS (t text);
CREATE FUNCTION rb_inner_compare(rb_inner, rb_inner) RETURNS int IMMUTABLE LANGUAGE sql
    AS 'SELECT bttextcmp(($1).t, ($2).t)';
CREATE FUNCTION rb_inner_less(rb_inner, rb_inner) RETURNS bool IMMUTABLE LANGUAGE sql
    AS 'SELECT ($1).t < ($2).t';
CREATE FUNCTION rb_inner_equal(rb_inner, rb_inner) RETURNS bool IMMUTABLE LANGUAGE sql
    AS 'SELECT ($1).t = ($2).t';
CREATE OPERATOR <## (FUNCTION = rb_inner_less, LEFTARG = rb_inner, RIGHTARG = rb_inner);
CREATE OPERATOR =## (FUNCTION = rb_inner_equal, LEFTARG = rb_inner, RIGHTARG = rb_inner);
CREATE OPERATOR CLASS rb_inner_ops DEFAULT FOR TYPE rb_inner USING btree AS
    OPERATOR 1 <##, OPERATOR 3 =##, FUNCTION 1 rb_inner_compare(rb_inner, rb_inner);
CREATE TYPE rb_outer AS (a int, b rb_inner);
CREATE TABLE rb_rows (id int, r rb_outer) USING mot;
CREATE INDEX rb_rows_r ON rb_rows (r);
INSERT INTO rb_rows SELECT g, ROW(g / 2, ROW('v' || g)::rb_inner)::rb_outer FROM generate_series(1, 9) g;
ALTER TYPE rb_outer DROP ATTRIBUTE b;
SET enable_seqscan = off;
SELECT id FROM rb_rows WHERE r = ROW(2)::rb_outer ORDER BY id;
SELECT id FROM rb_rows WHERE r >= ROW(3)::rb_outer ORDER BY id;
RESET enable_seqscan;

-- What a failed build has left is in no writer's way, and a build that is repeated fails as before.
CREATE TABLE rb_left (a int, b int) USING mot;
INSERT INTO rb_left VALUES (0, 0), (1, 1);
CREATE INDEX CONCURRENTLY rb_left_b ON rb_left (b) WHERE 10 / a > 1;
INSERT INTO rb_left VALUES (0, 1);
UPDATE rb_left SET b = 5 WHERE a = 0;
COPY rb_left FROM stdin;
0	7
2	8
\.
SELECT * FROM rb_left ORDER BY a, b;
REINDEX INDEX rb_left_b;
DELETE FROM rb_left WHERE a = 0;
REINDEX INDEX rb_left_b;
SET enable_seqscan = off;
SELECT a FROM rb_left WHERE 10 / a > 1 AND b = 8;
RESET enable_seqscan;
INSERT INTO rb_left VALUES (0, 1);

-- Rows that come meanwhile keep no part of a key that failed.
CREATE TABLE rb_long (id int, body text) USING mot;
INSERT INTO rb_long VALUES (1, repeat('x', 20000));
CREATE INDEX CONCURRENTLY rb_long_body ON rb_long (id, lower(body));
INSERT INTO rb_long VALUES (2, repeat('y', 20000)), (3, 'short');
DROP INDEX rb_long_body;
CREATE INDEX ON rb_long (md5(body));
SET enable_seqscan = off;
SELECT id FROM rb_long WHERE md5(body) = md5(repeat('y', 20000));
RESET enable_seqscan;
-- A cancelled statement is cancelled, and what its block has done is undone.
CREATE FUNCTION rb_cancelled(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN IF $1 = 0 THEN RAISE SQLSTATE '57014'; END IF; RETURN $1; END $$;
CREATE TABLE rb_cancels (a int) USING mot;
INSERT INTO rb_cancels VALUES (0);
CREATE INDEX CONCURRENTLY rb_cancels_a ON rb_cancels (rb_cancelled(a));
DO $$
BEGIN
    INSERT INTO rb_cancels VALUES (1);
    INSERT INTO rb_cancels VALUES (0);
EXCEPTION WHEN query_canceled THEN
    RAISE NOTICE 'cancelled';
END $$;
-- No transaction is left open.
SAVEPOINT s;
SELECT * FROM rb_cancels;

SELECT mot.check(c::regclass) IS NOT NULL FROM unnest('{rb_child,rb_ids,rb_moved,rb_rows,rb_left,rb_long,rb_cancels}'::text[]) c;
SET client_min_messages = warning;
DROP SCHEMA rb CASCADE;
RESET client_min_messages;
RESET search_path;
