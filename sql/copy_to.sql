-- COPY table TO: what a heap table gives.
CREATE TABLE ct_heap (a int, "B b" text DEFAULT 'x', c int GENERATED ALWAYS AS (a * 2) STORED, gone int, d numeric);
CREATE FOREIGN TABLE ct (a int, "B b" text DEFAULT 'x', c int GENERATED ALWAYS AS (a * 2) STORED, gone int, d numeric) SERVER mot;
ALTER TABLE ct_heap DROP COLUMN gone;
ALTER TABLE ct DROP COLUMN gone;
INSERT INTO ct_heap VALUES (1, 'one', DEFAULT, 1.50), (2, NULL, DEFAULT, NULL), (3, E'a\tb"c', DEFAULT, 3);
INSERT INTO ct (a, "B b", d) SELECT a, "B b", d FROM ct_heap;
CREATE TABLE ct_child () INHERITS (ct);
INSERT INTO ct_child (a) VALUES (4);
COPY ct_heap TO stdout;
COPY ct TO stdout;
COPY ct_heap (d, "B b") TO stdout WITH (FORMAT csv, HEADER, FORCE_QUOTE ("B b"), NULL 'none');
COPY ct (d, "B b") TO stdout WITH (FORMAT csv, HEADER, FORCE_QUOTE ("B b"), NULL 'none');
COPY ct (a) TO stdout;
-- What is wrong is told as for heap tables.
\set VERBOSITY verbose
\set SHOW_CONTEXT never
CREATE FUNCTION pg_temp.refused(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text;
BEGIN
  EXECUTE command;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
  -- Versions word this one differently.
  message := regexp_replace(message, '^COPY force.null .*', 'COPY FORCE_NULL only with CSV', 'i');
  RETURN replace(format('%s: %s %s', state, message, detail), 'ct_heap', 'ct');
END $$;
SELECT what, pg_temp.refused('COPY ct ' || what) AS answer, pg_temp.refused('COPY ct ' || what) = pg_temp.refused('COPY ct_heap ' || what) AS "as heap"
FROM unnest(ARRAY['(c) TO ''/tmp/nothing''', '(a, a) TO ''/tmp/nothing''', '(ctid) TO ''/tmp/nothing''', '(ct) TO ''/tmp/nothing''', '(gone) TO ''/tmp/nothing''',
  'TO ''nothing''', 'TO ''/tmp/nothing'' WITH (FORCE_NULL (a))']) what;
\set VERBOSITY default
-- Rights are those to the columns.
CREATE ROLE ct_reader;
GRANT SELECT (a) ON ct TO ct_reader;
SET ROLE ct_reader;
COPY ct (a) TO stdout;
COPY ct (a, d) TO stdout;
COPY ct TO stdout;
RESET ROLE;
REVOKE ALL ON ct FROM ct_reader;
DROP ROLE ct_reader;
-- In a transaction the table as it is there; without columns as many rows.
BEGIN;
UPDATE ct SET d = 0 WHERE a = 1;
COPY ct TO stdout;
ROLLBACK;
CREATE FOREIGN TABLE ct_none () SERVER mot;
INSERT INTO ct_none DEFAULT VALUES;
COPY ct_none TO stdout;
DROP TABLE ct_heap, ct_child;
DROP FOREIGN TABLE ct, ct_none;
