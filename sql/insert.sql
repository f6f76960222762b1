-- This file belongs to mot_ext/src/table_am.
-- Every statement given to same() runs on a memory-optimized table and on its ordinary twin; both must give the same rows, the
-- same count or the same error.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA fdw_insert;
CREATE SCHEMA fdw_insert_heap;
SET search_path = fdw_insert, pg_catalog;
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
DECLARE mine text := fdw_insert.outcome('fdw_insert', statement); heap text := fdw_insert.outcome('fdw_insert_heap', statement);
BEGIN
  PERFORM set_config('search_path', 'fdw_insert, pg_catalog', true);
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
  EXECUTE format('CREATE FOREIGN TABLE fdw_insert.%I (%s) SERVER mot', name, columns);
  EXECUTE format('CREATE TABLE fdw_insert_heap.%I (%s)', name, columns);
  FOREACH i IN ARRAY indexes LOOP
    EXECUTE format(i, 'fdw_insert.' || name);
    EXECUTE format(i, 'fdw_insert_heap.' || name);
  END LOOP;
END $$;
-- INSERT: defaults, constraints, RETURNING, ON CONFLICT, COPY, triggers, partitions.
SELECT twin('t', 'id int PRIMARY KEY, a int NOT NULL, b text DEFAULT ''d'', c int CHECK (c > 0), g int GENERATED ALWAYS AS (a * 2) STORED');
SELECT same('INSERT INTO t (id, a) VALUES (1, 10)');
SELECT same('INSERT INTO t VALUES (2, 20, ''x'', 3) RETURNING *');
SELECT same('INSERT INTO t (id, a) SELECT i, i FROM generate_series(3, 100) i RETURNING id, g, b');
SELECT same('INSERT INTO t VALUES (1, 1)');
SELECT same('INSERT INTO t VALUES (200, NULL)');
SELECT same('INSERT INTO t VALUES (NULL, 1)');
SELECT same('INSERT INTO t VALUES (201, 1, NULL, 0)');
SELECT same('INSERT INTO t VALUES (202, 1), (203, 2), (202, 3)');
SELECT same('INSERT INTO t (id, a) SELECT id + 1000, a FROM t');
SELECT same('TABLE t');
-- core's wording, with its fields
\set SHOW_CONTEXT never
DO $$
DECLARE state text; message text; detail text; tab text; con text; sch text;
BEGIN
  INSERT INTO t VALUES (1, 1);
EXCEPTION WHEN unique_violation THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
    tab = TABLE_NAME, con = CONSTRAINT_NAME, sch = SCHEMA_NAME;
  RAISE WARNING '% | % | % | %.% | %', state, message, detail, sch, tab, con;
END $$;
-- ON CONFLICT
SELECT same('INSERT INTO t VALUES (1, 5), (5001, 5) ON CONFLICT DO NOTHING RETURNING id');
SELECT same('INSERT INTO t VALUES (1, 5), (5002, 5), (5002, 6) ON CONFLICT (id) DO NOTHING RETURNING id');
SELECT same('INSERT INTO t AS o VALUES (1, 5, ''new'') ON CONFLICT (id) DO UPDATE SET b = o.b || excluded.b, a = excluded.a RETURNING *');
SELECT same('INSERT INTO t AS o VALUES (2, 5), (5003, 7) ON CONFLICT (id) DO UPDATE SET a = o.a + excluded.a WHERE o.a < 1000 RETURNING *');
SELECT same('INSERT INTO t AS o VALUES (2, 5) ON CONFLICT (id) DO UPDATE SET a = 0 WHERE false RETURNING *');
SELECT same('INSERT INTO t VALUES (5005, 5), (5005, 6) ON CONFLICT (id) DO UPDATE SET a = 1');
SELECT same('INSERT INTO t VALUES (3, 5) ON CONFLICT (id) DO UPDATE SET id = 4');
SELECT same('INSERT INTO t VALUES (3, 5) ON CONFLICT (id) DO UPDATE SET c = -1');
SELECT same('INSERT INTO t VALUES (3, 5) ON CONFLICT (id) DO UPDATE SET id = 7003 RETURNING *');
SELECT same('INSERT INTO t VALUES (3, 5) ON CONFLICT (a) DO NOTHING');
SELECT same('TABLE t');
-- several unique keys, and NULLs in them
SELECT twin('u', 'a int, b int, c text, UNIQUE (a, b), UNIQUE (c)');
SELECT same('INSERT INTO u VALUES (1, 1, ''x''), (1, NULL, ''y''), (1, NULL, ''z''), (NULL, NULL, NULL), (NULL, NULL, NULL)');
SELECT same('INSERT INTO u VALUES (1, 1, ''q'')');
SELECT same('INSERT INTO u VALUES (2, 1, ''x'')');
SELECT same('INSERT INTO u VALUES (2, 1, ''x'') ON CONFLICT (a, b) DO NOTHING');
SELECT same('INSERT INTO u VALUES (2, 1, ''x'') ON CONFLICT (c) DO UPDATE SET a = 9 RETURNING *');
SELECT same('INSERT INTO u VALUES (9, 1, ''x'') ON CONFLICT DO NOTHING');
SELECT same('TABLE u');
-- a failed statement leaves nothing; a savepoint neither
BEGIN;
INSERT INTO u VALUES (50, 50, 'fifty');
SAVEPOINT s;
INSERT INTO u VALUES (51, 51, 'fifty');
ROLLBACK TO s;
INSERT INTO u VALUES (51, 51, 'fifty-one');
SAVEPOINT s2;
INSERT INTO u VALUES (52, 52, 'fifty-two');
ROLLBACK TO s2;
COMMIT;
SELECT * FROM u WHERE a >= 50 ORDER BY a;
DELETE FROM u WHERE a >= 50;
INSERT INTO u VALUES (50, 50, 'fifty');
DELETE FROM u WHERE a = 50;
-- COPY
COPY t (id, a, b) FROM stdin;
8001	1	one
8002	2	\N
\.
COPY t (id, a, b) FROM stdin;
8003	3	three
8001	1	again
\.
COPY t (id, a) FROM stdin;
8004	\N
\.
COPY (SELECT * FROM t WHERE id > 8000 ORDER BY id) TO stdout;
-- identity and sequences
CREATE FOREIGN TABLE s (id int GENERATED ALWAYS AS IDENTITY, v serial, x text) SERVER mot;
INSERT INTO s (x) VALUES ('a'), ('b') RETURNING *;
-- row triggers see and change the row
SELECT twin('tr', 'id int PRIMARY KEY, v text');
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id < 0 THEN RETURN NULL; END IF; NEW.v := upper(NEW.v) || TG_OP; RETURN NEW; END $$;
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON tr FOR EACH ROW EXECUTE FUNCTION change();
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON fdw_insert_heap.tr FOR EACH ROW EXECUTE FUNCTION change();
SELECT same('INSERT INTO tr VALUES (1, ''a''), (-1, ''b''), (2, ''c'') RETURNING *');
-- ON CONFLICT DO UPDATE with row triggers: BEFORE INSERT in any case, those of UPDATE around an update, AFTER INSERT for new rows
SELECT twin('tc', 'id int PRIMARY KEY, v text, w int DEFAULT 0, g text GENERATED ALWAYS AS (v || ''!'') STORED');
CREATE TABLE log (n serial, entry text);
CREATE TABLE fdw_insert_heap.log (n serial, entry text);
CREATE FUNCTION logged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log (entry) VALUES (concat_ws(' ', TG_NAME, TG_WHEN, TG_OP, to_json(OLD), '->', to_json(NEW)));
  IF TG_WHEN = 'BEFORE' AND TG_OP = 'UPDATE' THEN
    IF NEW.id = 9 THEN RETURN NULL; END IF;
    IF NEW.id = 8 AND pg_trigger_depth() = 1 THEN UPDATE tc SET w = 100 WHERE id = 8; END IF;
    NEW.v := NEW.v || '+';
  END IF;
  RETURN NEW;
END $$;
DO $$
DECLARE place text;
BEGIN
  FOREACH place IN ARRAY ARRAY['fdw_insert', 'fdw_insert_heap'] LOOP
    EXECUTE format('CREATE TRIGGER bi BEFORE INSERT ON %I.tc FOR EACH ROW EXECUTE FUNCTION logged()', place);
    EXECUTE format('CREATE TRIGGER bu BEFORE UPDATE ON %I.tc FOR EACH ROW EXECUTE FUNCTION logged()', place);
    EXECUTE format('CREATE TRIGGER ai AFTER INSERT ON %I.tc FOR EACH ROW EXECUTE FUNCTION logged()', place);
    EXECUTE format('CREATE TRIGGER au AFTER UPDATE ON %I.tc FOR EACH ROW EXECUTE FUNCTION logged()', place);
    EXECUTE format('CREATE TRIGGER auw AFTER UPDATE OF w ON %I.tc FOR EACH ROW EXECUTE FUNCTION logged()', place);
    EXECUTE format('CREATE TRIGGER auv AFTER UPDATE ON %I.tc FOR EACH ROW WHEN (NEW.w > OLD.w) EXECUTE FUNCTION logged()', place);
    EXECUTE format('CREATE TRIGGER sta AFTER INSERT OR UPDATE ON %I.tc EXECUTE FUNCTION logged()', place);
  END LOOP;
END $$;
SELECT same('INSERT INTO tc VALUES (1, ''a''), (2, ''b''), (8, ''h''), (9, ''i'') RETURNING *');
SELECT same('INSERT INTO tc VALUES (1, ''c''), (3, ''d''), (2, ''e''), (4, ''f'') ON CONFLICT (id) DO UPDATE SET v = tc.v || excluded.v RETURNING *');
SELECT same('INSERT INTO tc AS o VALUES (1, ''c''), (2, ''d'') ON CONFLICT (id) DO UPDATE SET w = o.w + 1 WHERE o.id = 2 RETURNING *');
SELECT same('INSERT INTO tc VALUES (9, ''not'') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *');
SELECT same('INSERT INTO tc VALUES (8, ''twice'') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *');
SELECT same('INSERT INTO tc VALUES (5, ''x''), (5, ''y'') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING *');
SELECT same('INSERT INTO tc VALUES (1, ''z''), (6, ''q'') ON CONFLICT (id) DO NOTHING RETURNING *');
SELECT same('SELECT * FROM tc ORDER BY id');
SELECT same('SELECT entry FROM log ORDER BY n');
SELECT entry FROM log WHERE entry LIKE '%"id":1%' OR entry LIKE 's%' ORDER BY n;
-- partitions
CREATE TABLE p (k int, v text) PARTITION BY RANGE (k);
CREATE FOREIGN TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) SERVER mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
INSERT INTO p SELECT i, 'v' || i FROM generate_series(0, 19) i;
INSERT INTO p1 VALUES (15, 'wrong');
SELECT tableoid::regclass, count(*) FROM p GROUP BY 1 ORDER BY 1;
-- ON CONFLICT through the parent
CREATE UNIQUE INDEX ON p1 (k);
CREATE UNIQUE INDEX ON p2 (k);
INSERT INTO p VALUES (1, 'again'), (11, 'again') ON CONFLICT DO NOTHING RETURNING *;
DELETE FROM p WHERE k IN (2, 12);
INSERT INTO p VALUES (1, 'again'), (2, 'new'), (2, 'newer'), (11, 'again'), (12, 'new') ON CONFLICT DO NOTHING RETURNING tableoid::regclass, *;
INSERT INTO p VALUES (1, 'again');
WITH new AS (INSERT INTO p VALUES (3, 'again'), (13, 'again') ON CONFLICT DO NOTHING RETURNING k) SELECT count(*) FROM new;
PREPARE into_p AS INSERT INTO p VALUES ($1, 'prepared') ON CONFLICT DO NOTHING;
EXECUTE into_p (4);
DELETE FROM p WHERE k = 4;
EXECUTE into_p (4);
DO $$ BEGIN INSERT INTO p VALUES (4, 'done'), (NULL, 'nowhere') ON CONFLICT DO NOTHING; EXCEPTION WHEN check_violation THEN RAISE WARNING '%', SQLERRM; END $$;
INSERT INTO p VALUES (4, 'key') ON CONFLICT (k) DO UPDATE SET v = 'key';
INSERT INTO p1 VALUES (4, 'key') ON CONFLICT (k) DO UPDATE SET v = 'key' RETURNING *;
EXPLAIN (COSTS OFF) INSERT INTO p VALUES (4, 'key') ON CONFLICT DO NOTHING;
EXPLAIN (COSTS OFF) SELECT * FROM p1 WHERE k = 4;
SELECT * FROM p WHERE k IN (1, 2, 3, 4, 11, 12, 13) ORDER BY k;
SELECT rows FROM mot.check('p1');
-- views with check option
CREATE VIEW w AS SELECT * FROM t WHERE a < 100 WITH CHECK OPTION;
INSERT INTO w (id, a) VALUES (9001, 50);
INSERT INTO w (id, a) VALUES (9002, 500);
-- ON CONFLICT through a view: the row in the way has to be one of its rows. Heap tables are asked, for older minor releases do not ask.
CREATE VIEW fdw_insert.v AS SELECT * FROM t WHERE a < 100;
CREATE VIEW fdw_insert_heap.v AS SELECT * FROM fdw_insert_heap.t WHERE a < 100;
SELECT same('INSERT INTO t (id, a) VALUES (9101, 50), (9102, 500)');
SELECT left(same('INSERT INTO v (id, a) VALUES (9102, 50) ON CONFLICT (id) DO UPDATE SET a = excluded.a'), 5);
SELECT left(same('INSERT INTO v (id, a) VALUES (9102, 50) ON CONFLICT (id) DO UPDATE SET a = excluded.a WHERE false'), 5);
SELECT left(same('INSERT INTO v (id, a) VALUES (9102, 50) ON CONFLICT (id) DO NOTHING'), 5);
SELECT left(same('INSERT INTO v (id, a) VALUES (9101, 60) ON CONFLICT (id) DO UPDATE SET a = v.a + excluded.a RETURNING id, a'), 5);
SELECT same('DELETE FROM t WHERE id IN (9101, 9102)');
-- which rows were inserted
SELECT same('INSERT INTO t (id, a) VALUES (9201, 1) RETURNING id, xmax = 0 AS is_new');
SELECT same('INSERT INTO t (id, a) VALUES (9201, 2), (9202, 2) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING id, a, xmax = 0 AS is_new');
SELECT same('INSERT INTO t (id, a) SELECT i, i FROM generate_series(9201, 9203) i ON CONFLICT (id) DO UPDATE SET a = t.a + excluded.a, b = repeat(''b'', 3000) RETURNING id, a, b, g, xmax = 0 AS is_new');
SELECT same('DELETE FROM t WHERE id IN (9201, 9202, 9203)');
SELECT id FROM t WHERE id IN (9001, 9002);
SELECT (mot.check('t')).rows AS t, (mot.check('u')).rows AS u, (mot.check('tr')).rows AS tr, (mot.check('p1')).rows AS p1, (mot.check('s')).rows AS s;
