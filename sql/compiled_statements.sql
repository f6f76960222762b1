-- Simple statements run in a compiled form, without the general executor. The whole suite runs with
-- mot.compiled_statements = on and = always; here is what only repeated, suspended and failing executions show.
SET mot.compiled_statements = always;
CREATE FOREIGN TABLE cs (id int PRIMARY KEY, n int NOT NULL, t text) SERVER mot;
CREATE INDEX ON cs (n);
PREPARE put(int, int, text) AS INSERT INTO cs VALUES ($1, $2, $3);
PREPARE get(int) AS SELECT id, n + 1 AS next, t FROM cs WHERE id = $1;
PREPARE add(int, int) AS UPDATE cs SET n = n + $2 WHERE id = $1 RETURNING id, n, t;
PREPARE del(int) AS DELETE FROM cs WHERE id = $1 RETURNING *;
PREPARE low(int) AS SELECT id FROM cs WHERE n >= $1 AND t <> 'skip' ORDER BY n LIMIT 2;
EXECUTE put(1, 10, 'a');
EXECUTE put(2, 20, NULL);
EXECUTE put(3, 30, 'skip');
EXECUTE put(4, 40, repeat('long', 1000));
EXECUTE get(1);
EXECUTE get(2);
EXECUTE get(99);
EXECUTE get(NULL);
EXECUTE add(1, 5);
EXECUTE add(99, 5);
EXECUTE low(0);
EXECUTE low(25);
EXECUTE del(4);
EXECUTE del(4);
SELECT tableoid::regclass, ctid IS NOT NULL AS has_ctid, id FROM cs WHERE id = 1;

-- Errors leave the compiled form usable.
EXECUTE put(1, 0, 'duplicate');
EXECUTE put(5, NULL, 'no number');
EXECUTE add(1, NULL);
EXECUTE add(1, 2147483647);
EXECUTE put(5, 50, 'e');
EXECUTE add(1, 1);
DO $$
DECLARE c text; t text; m text;
BEGIN
    FOR i IN 1..3 LOOP
        BEGIN
            INSERT INTO cs VALUES (1, i, 'x');
        EXCEPTION WHEN unique_violation THEN
            GET STACKED DIAGNOSTICS c = CONSTRAINT_NAME, t = TABLE_NAME, m = MESSAGE_TEXT;
            RAISE NOTICE '% % %', c, t, m;
        END;
    END LOOP;
END $$;
SELECT count(*) FROM cs WHERE id = 1;

-- An error says all it says on the general path.
EXECUTE put(30, 300, '{');
PREPARE parsed(int) AS SELECT t::json FROM cs WHERE id = $1;
EXECUTE parsed(30);
PREPARE parsed_back(int) AS UPDATE cs SET n = n WHERE id = $1 RETURNING t::json;
EXECUTE parsed_back(30);
EXECUTE del(30);

-- What locks rows is a command of its own: what follows has a later number.
PREPARE lock_one(int) AS SELECT id FROM cs WHERE id = $1 FOR UPDATE;
EXECUTE lock_one(1);
BEGIN;
EXECUTE lock_one(1);
EXECUTE put(8, 80, 'h');
SELECT cmin FROM cs WHERE id = 8;
ROLLBACK;

-- Rights are asked for at every execution.
CREATE ROLE cs_reader;
GRANT SELECT ON cs TO cs_reader;
SET ROLE cs_reader;
EXECUTE get(1);
EXECUTE add(1, 1);
EXECUTE put(6, 60, 'f');
RESET ROLE;
REVOKE SELECT ON cs FROM cs_reader;
SET ROLE cs_reader;
EXECUTE get(1);
RESET ROLE;
DROP ROLE cs_reader;
-- Also the right to call a function.
CREATE ROLE cs_caller;
GRANT SELECT ON cs TO cs_caller;
PREPARE upper_of(int) AS SELECT upper(t) FROM cs WHERE id = $1;
EXECUTE upper_of(1);
REVOKE EXECUTE ON FUNCTION upper(text) FROM PUBLIC;
SET ROLE cs_caller;
EXECUTE upper_of(1);
RESET ROLE;
GRANT EXECUTE ON FUNCTION upper(text) TO PUBLIC;
UPDATE pg_proc SET proacl = NULL WHERE oid = 'upper(text)'::regprocedure;
SET ROLE cs_caller;
EXECUTE upper_of(1);
RESET ROLE;
DROP OWNED BY cs_caller;
DROP ROLE cs_caller;

-- A cursor is suspended in the middle, sees its snapshot, and keeps the table from being changed under it.
BEGIN;
DECLARE c CURSOR FOR SELECT id, n FROM cs ORDER BY id;
FETCH 1 FROM c;
EXECUTE put(7, 70, 'late');
UPDATE cs SET n = 0 WHERE id = 3;
SAVEPOINT s;
DROP FOREIGN TABLE cs;
ROLLBACK TO s;
TRUNCATE cs;
ROLLBACK TO s;
FETCH ALL FROM c;
-- The same plan again while the cursor is open.
DECLARE d CURSOR FOR SELECT id, n FROM cs ORDER BY id;
FETCH 2 FROM d;
CLOSE c;
FETCH 2 FROM d;
MOVE BACKWARD ALL FROM d;
ROLLBACK;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM cs ORDER BY id;
FETCH 1 FROM h;
COMMIT;
FETCH ALL FROM h;
CLOSE h;
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT id FROM cs ORDER BY id;
FETCH LAST FROM s;
FETCH FIRST FROM s;
COMMIT;

-- A cursor of a released savepoint is its parent's: the rollback of another savepoint does not end it. One that failed is gone.
BEGIN;
SAVEPOINT a;
DECLARE c CURSOR FOR SELECT id FROM cs ORDER BY id;
FETCH 1 FROM c;
RELEASE a;
SAVEPOINT b;
ROLLBACK TO b;
FETCH 1 FROM c;
DECLARE f CURSOR FOR SELECT id, 1 / (id - 2) AS x FROM cs ORDER BY id;
FETCH 1 FROM f;
SAVEPOINT d;
FETCH 1 FROM f;
ROLLBACK TO d;
FETCH 1 FROM f;
COMMIT;

-- A SQL function keeps its plans while the calling query runs; the table changes meanwhile.
CREATE FOREIGN TABLE cs_late (id int PRIMARY KEY, n int) SERVER mot;
INSERT INTO cs_late VALUES (1, 0);
CREATE FUNCTION cs_late_add() RETURNS int LANGUAGE sql AS $$ UPDATE cs_late SET n = n + 1 WHERE id = 1 RETURNING n $$;
CREATE FUNCTION cs_late_alter(k int, command text) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN IF k = 3 THEN EXECUTE command; END IF; RETURN k; END $$;
SELECT cs_late_add(), cs_late_alter(k, 'ALTER TABLE cs_late ADD COLUMN x int; UPDATE cs_late SET x = 42')
    FROM generate_series(1, 5) k;
SELECT * FROM cs_late;
SELECT cs_late_add(), cs_late_alter(k, 'ALTER TABLE cs_late ADD CHECK (n < 9)') FROM generate_series(1, 5) k;
SELECT * FROM cs_late;

-- A function of the server's that runs SQL, which changes the table under the statement.
CREATE FUNCTION cs_late_empty() RETURNS int LANGUAGE plpgsql AS $$ BEGIN TRUNCATE cs_late; RETURN 1; END $$;
UPDATE cs_late SET x = length(query_to_xml('SELECT cs_late_empty()', false, false, '')::text);
DO $$ BEGIN PERFORM query_to_xml('SELECT cs_late_empty()', false, false, '') FROM cs_late; END $$;
SELECT * FROM cs_late;

-- A function that remembers the row type it saw; ALTER TYPE makes no new plan.
CREATE TYPE cs_pair AS (a int, b int);
SET plan_cache_mode = force_generic_plan;
PREPARE pair(text) AS SELECT jsonb_populate_record(NULL::cs_pair, $1::jsonb) AS pair FROM cs_late WHERE id = 1;
EXECUTE pair('{"a": 1, "b": 2, "c": 3}');
EXECUTE pair('{"a": 1, "b": 2, "c": 3}');
ALTER TYPE cs_pair ADD ATTRIBUTE c int;
EXECUTE pair('{"a": 1, "b": 2, "c": 3}');
ALTER TYPE cs_pair ALTER ATTRIBUTE a TYPE text;
EXECUTE pair('{"a": 1, "b": 2, "c": 3}');
RESET plan_cache_mode;
DEALLOCATE pair;

-- A list of composite values, which core keeps hashed with the expression, by the columns that the type had.
CREATE TYPE cs_key AS (a int, b int);
CREATE FOREIGN TABLE cs_composite (id int PRIMARY KEY, c cs_key) SERVER mot;
INSERT INTO cs_composite SELECT g, ROW(g, g)::cs_key FROM generate_series(1, 3) g;
PREPARE listed AS SELECT id FROM cs_composite
    WHERE c = ANY ('{"(1,1)","(2,2)","(3,3)","(4,4)","(5,5)","(6,6)","(7,7)","(8,8)","(9,9)"}'::cs_key[]);
PREPARE others AS DELETE FROM cs_composite
    WHERE c <> ALL ('{"(1,1)","(2,2)","(3,3)","(4,4)","(5,5)","(6,6)","(7,7)","(8,8)","(9,9)"}'::cs_key[]);
PREPARE joined AS SELECT id FROM cs_composite o JOIN cs_composite l USING (id)
    WHERE o.c = ANY ('{"(1,1)","(2,2)","(3,3)","(4,4)","(5,5)","(6,6)","(7,7)","(8,8)","(9,9)"}'::cs_key[]);
EXECUTE listed;
EXECUTE listed;
EXECUTE others;
EXECUTE others;
EXECUTE joined;
EXECUTE joined;
ALTER TYPE cs_key ADD ATTRIBUTE x int;
EXECUTE listed;
EXECUTE others;
EXECUTE joined;
DEALLOCATE listed;
DEALLOCATE others;
DEALLOCATE joined;
DROP FOREIGN TABLE cs_composite;
DROP TYPE cs_key;

-- Failed executions, of which core tells no end, leave no memory behind.
CREATE FUNCTION cs_failing() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR k IN 1..200 LOOP
        BEGIN
            INSERT INTO cs_late (id) VALUES (1);
        EXCEPTION WHEN unique_violation THEN NULL;
        END;
    END LOOP;
END $$;
SELECT cs_failing();
SELECT coalesce(max(used_bytes), 0) < 100000 AS little FROM pg_backend_memory_contexts WHERE name = 'mot execution';
DROP FOREIGN TABLE cs_late;
DROP FUNCTION cs_late_add, cs_late_alter, cs_late_empty, cs_failing;
DROP TYPE cs_pair;

-- A function that runs the statement it is called from.
CREATE FUNCTION cs_depth(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record; total int := 0;
BEGIN
    FOR r IN SELECT id FROM cs WHERE id <= k ORDER BY id LOOP
        total := total + 1;
        IF k > 1 THEN total := total + cs_depth(k - 1); END IF;
    END LOOP;
    RETURN total;
END $$;
SELECT cs_depth(3);
SELECT cs_depth(3);

-- The table changes between two executions.
BEGIN;
TRUNCATE cs;
EXECUTE get(1);
EXECUTE put(1, 1, 'new');
EXECUTE get(1);
ROLLBACK;
EXECUTE get(1);
ALTER TABLE cs ADD COLUMN extra int DEFAULT 7;
EXECUTE get(1);
EXECUTE del(5);
PREPARE all_of(int) AS SELECT * FROM cs WHERE id = $1;
EXECUTE all_of(1);
EXECUTE all_of(1);
ALTER TABLE cs DROP COLUMN extra;
EXECUTE all_of(1);
EXECUTE put(8, 80, 'h');
EXECUTE get(8);
CREATE TABLE cs_log (id int, n int);
CREATE FUNCTION cs_log() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO cs_log VALUES (new.id, new.n); RETURN new; END $$;
CREATE TRIGGER log AFTER INSERT OR UPDATE ON cs FOR EACH ROW EXECUTE FUNCTION cs_log();
EXECUTE put(9, 90, 'i');
EXECUTE add(9, 1);
SELECT * FROM cs_log;
DROP TRIGGER log ON cs;
ALTER TABLE cs ADD CHECK (n < 100);
EXECUTE add(9, 50);
DROP INDEX cs_n_idx;
EXECUTE low(25);

-- CHECK: conditions are compiled with the statement, words are core's.
CREATE FOREIGN TABLE cs_checked (id int PRIMARY KEY, n int NOT NULL, t text, CONSTRAINT small CHECK (n < 100),
    CONSTRAINT short CHECK (length(t) < 6 OR n = 50), CONSTRAINT ratio CHECK (1000 / n > 5), CHECK (tableoid <> 0)) SERVER mot;
PREPARE checked_put(int, int, text) AS INSERT INTO cs_checked VALUES ($1, $2, $3);
PREPARE checked_set(int, int) AS UPDATE cs_checked SET n = $2 WHERE id = $1 RETURNING *;
EXECUTE checked_put(1, 10, 'a');
EXECUTE checked_put(2, 50, 'longer text');
EXECUTE checked_put(3, 20, NULL);
EXECUTE checked_put(4, 100, 'x');
EXECUTE checked_put(4, 20, 'too long');
EXECUTE checked_put(4, 0, 'x');
EXECUTE checked_put(4, NULL, 'too long');
EXECUTE checked_put(4, 99, 'x');
EXECUTE checked_set(1, 100);
EXECUTE checked_set(1, 11);
EXECUTE checked_set(2, 51);
EXECUTE checked_set(1, 0);
EXECUTE checked_set(1, NULL);
CREATE FUNCTION cs_violate() RETURNS text LANGUAGE plpgsql AS $$
DECLARE seen text := ''; name text;
BEGIN
    FOR i IN 95 .. 104 LOOP
        BEGIN
            UPDATE cs_checked SET n = i, t = repeat('x', i - 97) WHERE id = 1;
            seen := seen || ' ' || i;
        EXCEPTION WHEN check_violation THEN
            GET STACKED DIAGNOSTICS name = CONSTRAINT_NAME;
            seen := seen || ' ' || name;
        END;
    END LOOP;
    RETURN seen;
END $$;
SELECT cs_violate();
SELECT cs_violate();
ALTER TABLE cs_checked DROP CONSTRAINT small;
EXECUTE checked_set(1, 120);
ALTER TABLE cs_checked ADD CONSTRAINT even CHECK (n % 2 = 0) NOT VALID;
EXECUTE checked_set(1, 121);
EXECUTE checked_set(1, 122);
CREATE FUNCTION cs_is_fine(int) RETURNS bool LANGUAGE sql AS 'SELECT $1 < 130';
ALTER TABLE cs_checked ADD CONSTRAINT fine CHECK (cs_is_fine(n)) NOT VALID;
EXECUTE checked_set(1, 124);
EXECUTE checked_set(1, 132);
SELECT * FROM cs_checked ORDER BY id;
DROP FOREIGN TABLE cs_checked;
DROP FUNCTION cs_violate, cs_is_fine;

-- Transactions and savepoints.
BEGIN;
EXECUTE add(1, 100);
SELECT n FROM cs WHERE id = 1;
ROLLBACK;
BEGIN;
EXECUTE put(20, 1, 'x');
SAVEPOINT s;
EXECUTE put(20, 1, 'x');
ROLLBACK TO s;
EXECUTE get(20);
EXECUTE del(20);
EXECUTE get(20);
COMMIT;
BEGIN READ ONLY;
EXECUTE get(1);
EXECUTE put(21, 1, 'x');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE get(1);
ROLLBACK;

-- Row locks, and what is not changed is not returned.
BEGIN;
PREPARE lock(int) AS SELECT id, n FROM cs WHERE id = $1 FOR UPDATE;
EXECUTE lock(1);
EXECUTE lock(1);
EXECUTE lock(99);
SELECT id FROM cs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
COMMIT;

-- In functions: arrays, records and variables as arguments.
CREATE FUNCTION cs_run(ids int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; sum int := 0;
BEGIN
    FOR i IN 1 .. array_length(ids, 1) LOOP
        SELECT id, n INTO r FROM cs WHERE id = ids[i];
        CONTINUE WHEN NOT FOUND;
        UPDATE cs SET n = r.n - 1 WHERE id = r.id;
        sum := sum + r.n;
    END LOOP;
    RETURN sum;
END $$;
SELECT cs_run('{1,2,99,3}');
SELECT cs_run('{1,2,99,3}');
CREATE FUNCTION cs_sql(int) RETURNS SETOF int LANGUAGE sql AS $$ SELECT n FROM cs WHERE id >= $1 ORDER BY id $$;
SELECT cs_sql(2) LIMIT 2;
SELECT * FROM cs_sql(3);
-- It gives its rows one by one, and runs on after the savepoint it began under is gone, as long as its cursor does.
BEGIN;
DECLARE c CURSOR FOR SELECT cs_sql(1);
SAVEPOINT s;
FETCH 1 FROM c;
ROLLBACK TO s;
CLOSE c;
SELECT cs_sql(3);
COMMIT;
SELECT cs_sql(3);
-- What failed under a savepoint younger than itself had no End. What gets the memory of its query later is not taken for it.
CREATE FUNCTION cs_alias() RETURNS int LANGUAGE plpgsql AS $$
DECLARE c refcursor; x int; failed int := 0;
BEGIN
    FOR i IN 1 .. 4 LOOP
        OPEN c FOR SELECT 10 / (id - 2) AS x FROM cs WHERE id < 6;
        FETCH c INTO x;
        BEGIN
            IF i = 1 THEN FETCH c INTO x; END IF;
        EXCEPTION WHEN division_by_zero THEN failed := failed + 1;
        END;
        CLOSE c;
    END LOOP;
    RETURN failed;
END $$;
SELECT cs_alias();
SELECT cs_alias();

-- EXPLAIN is the general path's.
EXPLAIN (COSTS OFF) EXECUTE get(1);
-- What EXPLAIN says, without the decimals that 18 gives to counts of rows.
CREATE FUNCTION pg_temp.explained(statement text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, statement) LOOP
    IF line !~ 'Index Searches' THEN RETURN NEXT regexp_replace(line, '(rows=\d+)\.00', '\1'); END IF;
  END LOOP;
END $$;
SELECT pg_temp.explained('EXECUTE get(1)', 'ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF');
RESET mot.compiled_statements;
SELECT rows FROM mot.check('cs');
SELECT * FROM cs ORDER BY id;
DROP TABLE cs, cs_log;
DROP FUNCTION cs_alias, cs_depth, cs_log, cs_run, cs_sql;
-- A cast to json of the users', which functions of json call, is SQL that could change the table under the statement: the table is in use.
CREATE TYPE cs_mood AS ENUM ('a', 'b');
CREATE FOREIGN TABLE cs_json (id int PRIMARY KEY, m cs_mood, x text) SERVER mot;
INSERT INTO cs_json VALUES (1, 'a', 'old'), (2, 'b', 'old');
CREATE FUNCTION cs_to_json(cs_mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE current_setting('cs.command'); RETURN '"new"'; END $$;
CREATE CAST (cs_mood AS json) WITH FUNCTION cs_to_json(cs_mood);
SET cs.command = 'CREATE INDEX cs_json_x ON cs_json (x)';
UPDATE cs_json SET x = to_json(m)::text WHERE id = 1;
INSERT INTO cs_json VALUES (3, 'a', json_build_array('a'::cs_mood)::text);
SET cs.command = 'TRUNCATE cs_json';
INSERT INTO cs_json VALUES (3, 'a', to_json('a'::cs_mood)::text);
SET cs.command = 'SELECT 1';
UPDATE cs_json SET x = to_json(m)::text WHERE id = 1 RETURNING *;
SELECT id FROM cs_json WHERE m > 'a' ORDER BY id;
SELECT max(m), min(m) FROM cs_json;
SELECT rows FROM mot.check('cs_json');
DROP FOREIGN TABLE cs_json;
DROP CAST (cs_mood AS json);
DROP FUNCTION cs_to_json;
DROP TYPE cs_mood;
-- Expressions as deep as on heap tables: what looks at them for a compiled form, or for keys, leaves them to core.
CREATE FOREIGN TABLE cs_deep (id int PRIMARY KEY, t text UNIQUE) SERVER mot;
INSERT INTO cs_deep VALUES (1, 'a');
\set ECHO none
SELECT format('PREPARE deep AS SELECT id%s AS sum FROM cs_deep WHERE t = ''a''', repeat('+1', 1200)) \gexec
\set ECHO all
EXECUTE deep;
EXECUTE deep;
EXECUTE deep;
DEALLOCATE deep;
\set ECHO none
SELECT format('PREPARE deep AS SELECT id FROM cs_deep WHERE t = ''a'' AND id%s > 0', repeat('+1', 1200)) \gexec
\set ECHO all
EXECUTE deep;
EXECUTE deep;
DEALLOCATE deep;
-- Without indexes, for which core would look for bitmaps at each level.
CREATE FOREIGN TABLE cs_deeper (id int, t text) SERVER mot;
INSERT INTO cs_deeper VALUES (1, 'a');
-- And under a max_stack_depth near the system's limit: what is evaluated in the scan takes stack that nobody measures.
SET max_stack_depth = '7MB';
\set ECHO none
SELECT format('SELECT count(*) FROM cs_deeper WHERE %s id = 1 %s', repeat('(', 4000), repeat(' OR id = 2) AND t = ''a''', 4000)) \gexec
SELECT format('SELECT id FROM cs_deeper WHERE %s id = 1 %s', repeat('(', 4000), repeat(' OR id = 2) AND t = ''a''', 4000)) \gexec
\set ECHO all
RESET max_stack_depth;
DROP FOREIGN TABLE cs_deep, cs_deeper;
