-- Errors that parallel workers raise come out as they were raised while the leader is in a scan of a memory-optimized table: code, texts, names and
-- context. Beside each a heap table of the same name in another schema, where the same query says the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA pe_heap;
CREATE SCHEMA pe_mot;
-- Raises in a worker, while the leader waits for that.
CREATE FUNCTION pe_raise(kind text, n int) RETURNS int STABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT leader_pid IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()) THEN
        PERFORM pg_sleep(30);
    ELSIF kind = 'cancelled' THEN
        PERFORM pg_cancel_backend(pg_backend_pid());
        PERFORM pg_sleep(30);
    ELSIF kind = 'divided' THEN
        RETURN n / (n - n);
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'ZZ001', MESSAGE = 'raised in a worker', DETAIL = 'the detail', HINT = 'the hint',
        COLUMN = 'a_column', CONSTRAINT = 'a_constraint', DATATYPE = 'a_type', TABLE = 'a_table', SCHEMA = 'a_schema';
END $$;
CREATE FUNCTION pe_tables(schema text, make text, server text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE %s TABLE %I.many (id int PRIMARY KEY, val bigint) %s', make, schema, server);
    EXECUTE format('CREATE %s TABLE %I.few (id int PRIMARY KEY) %s', make, schema, server);
    EXECUTE format('INSERT INTO %I.many SELECT n, n * 3 FROM generate_series(1, 30000) n', schema);
    EXECUTE format('INSERT INTO %I.few SELECT n FROM generate_series(1, 3) n', schema);
    EXECUTE format('ANALYZE %I.many', schema);
    EXECUTE format('ANALYZE %I.few', schema);
END $$;
SELECT pe_tables('pe_heap', '', '');
SELECT pe_tables('pe_mot', 'FOREIGN', 'SERVER mot');
-- A parallel query in a function, whose leader is in a scan when a worker raises.
CREATE FUNCTION pe_counted(kind text) RETURNS int STABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM many m JOIN few f ON f.id = pe_raise(kind, m.id));
END $$;
CREATE FUNCTION pe_caught(kind text) RETURNS text STABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN pe_counted(kind);
EXCEPTION
    WHEN division_by_zero THEN RETURN 'division by zero';
    WHEN query_canceled THEN RETURN 'cancelled';
    WHEN SQLSTATE 'ZZ001' THEN RETURN 'ZZ001';
END $$;
-- What an application learns of it.
CREATE FUNCTION pe_told(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    code text; message text; details text; hints text; col text; con text; typ text; tab text; sch text; context text;
BEGIN
    EXECUTE query;
    RETURN NEXT 'no error';
EXCEPTION WHEN OTHERS OR query_canceled THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, details = PG_EXCEPTION_DETAIL, hints = PG_EXCEPTION_HINT,
        col = COLUMN_NAME, con = CONSTRAINT_NAME, typ = PG_DATATYPE_NAME, tab = TABLE_NAME, sch = SCHEMA_NAME, context = PG_EXCEPTION_CONTEXT;
    RETURN NEXT concat_ws(' | ', code, message, details, hints, col, con, typ, tab, sch);
    -- 18 calls it by another name.
    RETURN QUERY SELECT string_to_table(replace(context, 'PL/pgSQL expression', 'SQL expression'), E'\n');
END $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_bitmapscan = off;
CREATE TABLE queries (q int, query text);
INSERT INTO queries VALUES
    -- The leader is in a scan that began after the workers.
    (1, 'SELECT count(*) FROM many m JOIN few f ON f.id = pe_raise(''named'', m.id)'),
    (2, 'SELECT count(*) FROM many m JOIN few f ON f.id = pe_raise(''divided'', m.id)'),
    (3, 'SELECT count(*) FROM many m JOIN few f ON f.id = pe_raise(''cancelled'', m.id)'),
    -- It is between scans: in a condition, in what is selected.
    (4, 'SELECT count(*) FROM many WHERE pe_raise(''named'', id) > val'),
    (5, 'SELECT sum(pe_raise(''divided'', id)) FROM many'),
    -- The query is in a function, that is called from a scan.
    (6, 'SELECT count(*) FROM few WHERE id = pe_counted(''named'')'),
    (7, 'SELECT count(*) FROM few a JOIN few b ON b.id = a.id + pe_counted(''divided'')'),
    (8, 'UPDATE few SET id = pe_counted(''named'') WHERE id = 1'),
    -- A plan that begins below a scan, and is read in part.
    (9, 'SELECT count(*) FROM few WHERE id = CASE WHEN EXISTS (SELECT FROM many m JOIN few f ON f.id = pe_raise(''named'', m.id)) THEN 1 END'),
    -- Caught, and not the query's.
    (10, 'SELECT 1 / (id - id) FROM few WHERE pe_caught(''divided'') || pe_caught(''cancelled'') || pe_caught(''named'') <> ''division by zerocancelledZZ001''');
SET search_path = pe_mot, public;
EXPLAIN (COSTS OFF) SELECT count(*) FROM many m JOIN few f ON f.id = pe_raise('named', m.id);
SELECT q, told FROM queries, pe_told(query) told ORDER BY q;
CREATE TABLE told AS SELECT q, n, told FROM queries, pe_told(query) WITH ORDINALITY t (told, n);
SET search_path = pe_heap, public;
CREATE TABLE told AS SELECT q, n, told FROM queries, pe_told(query) WITH ORDINALITY t (told, n);
SELECT * FROM pe_mot.told m FULL JOIN pe_heap.told h USING (q, n) WHERE m.told IS DISTINCT FROM h.told ORDER BY q, n;
RESET search_path;
SELECT count(*) > 0 AS checked FROM (SELECT mot.check('pe_mot.many') UNION ALL SELECT mot.check('pe_mot.few')) c;
SET client_min_messages = error;
DROP SCHEMA pe_heap, pe_mot CASCADE;
DROP TABLE queries;
DROP FUNCTION pe_raise, pe_tables, pe_counted, pe_caught, pe_told;
