-- COPY that meets a duplicate names the row's line, as on heap; what a failed COPY leaves.
SET client_min_messages = warning;
CREATE SCHEMA am_copy_duplicates;
SET search_path = am_copy_duplicates;
-- an index whose function catches errors while a row waits for its own
CREATE FUNCTION inverse(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN 1000 / a;
EXCEPTION WHEN division_by_zero THEN
  RETURN -1;
END $$;
CREATE TABLE h (id int PRIMARY KEY, a int, b text) USING heap;
CREATE TABLE m (id int PRIMARY KEY, a int, b text) USING mot;
CREATE INDEX h_a ON h (inverse(a));
CREATE UNIQUE INDEX h_b ON h (lower(b)) WHERE a < 10;
CREATE INDEX m_a ON m (inverse(a));
CREATE UNIQUE INDEX m_b ON m (lower(b)) WHERE a < 10;
COPY h FROM stdin;
1	0	one
2	0	two
\.
COPY m FROM stdin;
1	0	one
2	0	two
\.
-- a key of the table, among others
COPY h FROM stdin;
3	0	three
2	0	four
5	0	five
6	0	six
\.
COPY m FROM stdin;
3	0	three
2	0	four
5	0	five
6	0	six
\.
-- a key of the same COPY, by the last index
COPY h FROM stdin;
3	0	three
4	0	four
5	10	FOUR
6	0	Four
7	0	seven
\.
COPY m FROM stdin;
3	0	three
4	0	four
5	10	FOUR
6	0	Four
7	0	seven
\.
-- lines that a condition leaves out
COPY h FROM stdin WHERE id > 1;
1	0	one
3	0	three
1	0	one
3	0	four
4	0	four
\.
COPY m FROM stdin WHERE id > 1;
1	0	one
3	0	three
1	0	one
3	0	four
4	0	four
\.
-- the first and the last line; other formats
COPY h FROM stdin (FORMAT csv, HEADER);
id,a,b
1,0,one
3,0,three
\.
COPY m FROM stdin (FORMAT csv, HEADER);
id,a,b
1,0,one
3,0,three
\.
COPY m FROM stdin (FORMAT csv);
3,0,"three
lines
"
4,0,four
1,0,one
\.
-- more rows than a batch has
COPY h FROM PROGRAM 'seq 3 2500 | sed "s/.*/&,0,row&/"; echo 1,0,one; seq 2501 3000 | sed "s/.*/&,0,row&/"' (FORMAT csv);
COPY m FROM PROGRAM 'seq 3 2500 | sed "s/.*/&,0,row&/"; echo 1,0,one; seq 2501 3000 | sed "s/.*/&,0,row&/"' (FORMAT csv);
SELECT * FROM m ORDER BY id;
SELECT rows, entries FROM mot.check('m');

-- an error that the session catches, and what comes after it in one transaction
BEGIN;
SAVEPOINT s;
COPY m FROM stdin;
3	0	three
1	0	one
4	0	four
\.
ROLLBACK TO s;
COPY m FROM stdin;
3	0	three
4	0	four
\.
INSERT INTO m VALUES (4, 0, 'x') ON CONFLICT (id) DO UPDATE SET b = 'FOUR';
COMMIT;
SELECT * FROM m ORDER BY id;
SELECT rows, entries FROM mot.check('m');

-- triggers, and partitions of both kinds
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'after %', NEW.id; RETURN NULL; END $$;
CREATE TRIGGER noted AFTER INSERT ON m FOR EACH ROW EXECUTE FUNCTION noted();
COPY m FROM stdin;
5	0	five
1	0	one
6	0	six
\.
CREATE TABLE p (id int, part int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) USING heap;
COPY p FROM stdin;
1	1
1	2
2	1
2	2
1	1
2	2
\.
COPY p FROM stdin;
1	1
1	2
2	1
2	2
1	2
1	1
\.
SELECT count(*) FROM p;

-- keys that core checks, and keys that only functions of their class compare
CREATE TABLE d (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, k int UNIQUE) USING mot;
COPY d FROM stdin;
1	1
1	2
2	1
3	3
\.
COPY d FROM stdin;
1	1
1	2
2	3
\.
CREATE FUNCTION abs_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT btint4cmp(abs($1), abs($2)) $$;
CREATE FUNCTION abs_eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT abs($1) = abs($2) $$;
CREATE FUNCTION abs_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT abs($1) < abs($2) $$;
CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = int, PROCEDURE = abs_eq);
CREATE OPERATOR <# (LEFTARG = int, RIGHTARG = int, PROCEDURE = abs_lt);
CREATE OPERATOR CLASS abs_ops FOR TYPE int USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, FUNCTION 1 abs_cmp(int, int);
CREATE TABLE l (v int) USING mot;
CREATE UNIQUE INDEX ON l (v abs_ops);
COPY l FROM stdin;
3
-1
1
4
\.
SELECT rows, entries FROM mot.check('l');
DROP SCHEMA am_copy_duplicates CASCADE;
