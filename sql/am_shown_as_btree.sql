-- Indexes of memory-optimized tables are btrees to programs that look their access method up. Heap says the same.
\set VERBOSITY terse
SET mot.show_indexes_as_btree = on;
CREATE SCHEMA shown_heap;
CREATE SCHEMA shown_mot;
SET client_min_messages = warning;
SET search_path = shown_heap;
\set tables 'CREATE TABLE " USING mot_index " (id int PRIMARY KEY, a text, b int, UNIQUE (a, b), EXCLUDE USING btree (b WITH =) DEFERRABLE); CREATE INDEX a_desc ON " USING mot_index " (a DESC, (b || '' USING mot_index '')) WHERE b > 0; CREATE UNIQUE INDEX " ON x USING mot_index " ON " USING mot_index " (b) INCLUDE (a); CREATE TABLE parent (id int, n int) PARTITION BY LIST (id); CREATE TABLE part PARTITION OF parent FOR VALUES IN (1); CREATE INDEX parted ON parent (n);'
:tables
SET search_path = shown_mot;
SET default_table_access_method = mot;
:tables
RESET default_table_access_method;
RESET search_path;
CREATE FUNCTION on_both(query text) RETURNS TABLE (on_heap text, is_same bool) LANGUAGE plpgsql AS $$
DECLARE mot text;
BEGIN
  EXECUTE format('SELECT string_agg(q::text, E''\n'') FROM (%s) q', replace(query, 'NAMESPACE', '''shown_heap''::regnamespace')) INTO on_heap;
  EXECUTE format('SELECT string_agg(q::text, E''\n'') FROM (%s) q', replace(query, 'NAMESPACE', '''shown_mot''::regnamespace')) INTO mot;
  is_same := replace(on_heap, 'shown_heap', 'shown_mot') = mot;
  IF NOT is_same THEN on_heap := on_heap || E'\nmot:\n' || coalesce(mot, 'nothing'); END IF;
  RETURN NEXT;
END $$;
\pset format unaligned
\pset tuples_only on
-- as Django, pgJDBC, TypeORM, SQLAlchemy and psql ask
SELECT * FROM on_both($$SELECT c.relname::text, am.amname FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' ORDER BY c.relname::text COLLATE "C"$$);
SELECT * FROM on_both($$SELECT c.relname::text, (SELECT amname FROM pg_catalog.pg_am WHERE oid = c.relam) AS method FROM pg_class c WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' AND EXISTS (SELECT FROM pg_am a WHERE a.oid = c.relam AND a.amname = 'btree') ORDER BY 1$$);
SELECT * FROM on_both($$WITH m AS MATERIALIZED (SELECT am.oid, am.amname FROM pg_am am, pg_namespace n WHERE n.nspname = 'pg_catalog') SELECT m.amname, count(*) FROM m JOIN pg_class c ON c.relam = m.oid WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' GROUP BY m.amname HAVING m.amname <> 'x' ORDER BY m.amname$$);
SELECT * FROM on_both($$SELECT CASE am.amname WHEN 'btree' THEN CASE i.indoption[0] & 1 WHEN 1 THEN 'D' ELSE 'A' END END, pg_get_indexdef(i.indexrelid, 1, false), pg_index_column_has_property(i.indexrelid, 1, 'desc') FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON c.relam = am.oid WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' ORDER BY c.relname::text COLLATE "C"$$);
SELECT * FROM on_both($$SELECT indexname::text, indexdef FROM pg_indexes WHERE schemaname = NAMESPACE::text ORDER BY indexname::text COLLATE "C"$$);
SELECT * FROM on_both($$SELECT conname::text, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE connamespace = NAMESPACE AND contype <> 'n' ORDER BY conname::text COLLATE "C"$$);
SELECT * FROM on_both($$SELECT DISTINCT ON (a.amname) a.amname, a.amtype FROM pg_am a RIGHT JOIN pg_class c ON c.relam = a.oid WHERE c.relnamespace = NAMESPACE AND c.relkind IN ('i', 'p') ORDER BY a.amname, c.relname::text COLLATE "C"$$);
-- by the oid alone, by what hangs on it, from the methods' side, and in two steps
SELECT * FROM on_both($$SELECT count(*), count(*) FILTER (WHERE c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')) FROM pg_class c WHERE c.relnamespace = NAMESPACE AND c.relam = 403$$);
SELECT * FROM on_both($$SELECT c.relname::text, opc.opcname::text, am.amname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam JOIN pg_opclass opc ON opc.opcmethod = am.oid AND opc.oid = i.indclass[0] WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' ORDER BY c.relname::text COLLATE "C"$$);
SELECT * FROM on_both($$SELECT am.amname, count(c.oid) FROM pg_am am LEFT JOIN pg_class c ON c.relam = am.oid AND c.relnamespace = NAMESPACE AND c.relkind = 'i' WHERE am.amname IN ('btree', 'gin') GROUP BY am.oid, am.amname ORDER BY am.amname$$);
SELECT * FROM on_both($$SELECT relkind, relam, count(*), min(relname::text COLLATE "C") FROM (SELECT relkind, relam, relname FROM pg_class WHERE relnamespace = NAMESPACE AND relkind IN ('i', 'p', 'I') UNION ALL SELECT 'x', 0, 'x') r GROUP BY ROLLUP (relkind, relam) ORDER BY relkind, relam$$);
SELECT * FROM on_both($$SELECT n.nspname IS NOT NULL AS is_there, c.relam, relam IS NULL AS is_missing FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'i' AND c.relam IN (403, 405) WHERE n.oid = NAMESPACE OR n.nspname = 'pg_toast_temp_0' ORDER BY 2, 3$$);
CREATE FUNCTION method_of(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found oid;
BEGIN
  SELECT relam INTO found FROM pg_class WHERE relname = name AND relnamespace = 'shown_mot'::regnamespace;
  RETURN (SELECT amname FROM pg_am WHERE oid = found);
END $$;
SELECT method_of('a_desc'), method_of(' USING mot_index ');
CREATE TEMP TABLE kept AS SELECT oid, relam FROM pg_class WHERE relnamespace = 'shown_mot'::regnamespace AND relkind = 'i';
INSERT INTO kept SELECT 0, c.relam FROM pg_class c WHERE c.oid = 'shown_mot.a_desc'::regclass;
UPDATE kept k SET relam = c.relam FROM pg_class c WHERE c.oid = k.oid AND c.relam = 403 RETURNING c.relam;
SELECT DISTINCT relam FROM kept;
DROP TABLE kept;
DROP FUNCTION method_of;
-- what a definition says makes the same index again
DO $$ DECLARE made text;
BEGIN
  SELECT pg_get_indexdef('shown_mot.a_desc'::regclass) INTO made;
  DROP INDEX shown_mot.a_desc;
  EXECUTE made;
  ASSERT made = pg_get_indexdef('shown_mot.a_desc'::regclass) AND made LIKE '% USING btree %';
END $$;
PREPARE methods AS SELECT am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = 'shown_mot.a_desc'::regclass;
EXECUTE methods;
CREATE VIEW shown_mot.methods AS SELECT c.relname, am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.relname = 'a_desc' AND c.relnamespace = 'shown_mot'::regnamespace;
SELECT * FROM shown_mot.methods;
SELECT pg_get_viewdef('shown_mot.methods') ~ 'CASE';
\d shown_mot.part
-- which access methods there are, system columns, and the catalog itself
SELECT amname FROM pg_am WHERE amname IN ('btree', 'mot', 'mot_index') ORDER BY amname;
SELECT am.tableoid::regclass, am.amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = 'shown_mot.a_desc'::regclass;
SELECT (am).amname FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = 'shown_mot.a_desc'::regclass;
-- which of the methods is core's
SELECT count(*) FROM pg_opclass WHERE opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree') AND opcname = 'int4_ops';
WITH b AS MATERIALIZED (SELECT oid FROM pg_am WHERE amname = 'btree') SELECT count(*) FROM b;
CREATE VIEW shown_mot.every AS SELECT oid, amname FROM pg_am;
SELECT count(*) FROM shown_mot.every WHERE amname = 'btree';
SELECT EXISTS (SELECT FROM pg_am WHERE amname = 'mot_index');
DO $$ DECLARE found oid; BEGIN found := (SELECT oid FROM pg_am WHERE amname = 'btree'); ASSERT found = 403; END $$;
-- whole rows, and of a join that has none
SELECT * FROM on_both($$SELECT (to_jsonb(c) ->> 'relam')::oid, (c).relam, c IS NULL, (ARRAY[c])[1].relam FROM pg_class c WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' ORDER BY c.relname::text COLLATE "C" LIMIT 2$$);
SELECT * FROM on_both($$SELECT to_jsonb(c) ->> 'relam', c::text, c IS NULL FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'nothing' WHERE n.oid = NAMESPACE$$);
SELECT * FROM on_both($$SELECT (SELECT to_jsonb(c) ->> 'relam' FROM (VALUES (1)) v) FROM pg_class c WHERE c.relnamespace = NAMESPACE AND c.relname = 'a_desc'$$);
-- SQL functions that core would inline
CREATE FUNCTION shown_mot.method(pg_class) RETURNS oid LANGUAGE sql STABLE AS 'SELECT $1.relam';
CREATE FUNCTION shown_mot.methods_in(oid) RETURNS TABLE (index name, method name) LANGUAGE sql STABLE AS 'SELECT c.relname, a.amname FROM Pg_Class c JOIN pg_am a ON a.oid = c.relam WHERE c.relnamespace = $1 AND c.relkind = ''i''';
CREATE FUNCTION shown_mot.methods_of(oid) RETURNS TABLE (index name, method name) LANGUAGE sql STABLE BEGIN ATOMIC SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relnamespace = $1 AND c.relkind = 'i'; END;
CREATE FUNCTION shown_mot.definition(oid) RETURNS text LANGUAGE sql AS 'SELECT pg_get_indexdef($1)';
CREATE FUNCTION shown_mot.definition_of(oid) RETURNS text LANGUAGE sql STABLE RETURN pg_get_indexdef($1, 0, true);
CREATE FUNCTION shown_mot.has_bytes(regclass) RETURNS boolean LANGUAGE sql AS 'SELECT pg_relation_size($1) > 0 AND pg_table_size($1) > 0';
CREATE FUNCTION shown_mot.all_bytes(regclass) RETURNS boolean LANGUAGE sql STABLE RETURN shown_mot.has_bytes($1) AND pg_total_relation_size($1) > 0;
SELECT * FROM on_both($$SELECT shown_mot.method(c), c.relname::text FROM pg_class c WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' ORDER BY c.relname::text COLLATE "C"$$);
SELECT * FROM on_both($$SELECT m.index::text, m.method FROM shown_mot.methods_in(NAMESPACE) m ORDER BY 1$$);
SELECT * FROM on_both($$SELECT m.index::text, m.method FROM pg_namespace n, shown_mot.methods_of(n.oid) m WHERE n.oid = NAMESPACE ORDER BY 1$$);
SELECT * FROM on_both($$SELECT shown_mot.definition(c.oid), shown_mot.definition_of(c.oid), shown_mot.has_bytes(c.oid), shown_mot.all_bytes(c.oid) FROM pg_class c WHERE c.relnamespace = NAMESPACE AND c.relkind = 'i' ORDER BY c.relname::text COLLATE "C"$$);
-- as they are called, so plans follow when one is replaced
PREPARE by_function AS SELECT method FROM shown_mot.methods_in('shown_mot'::regnamespace) WHERE index = 'a_desc';
EXECUTE by_function;
CREATE OR REPLACE FUNCTION shown_mot.methods_in(oid) RETURNS TABLE (index name, method name) LANGUAGE sql STABLE AS 'SELECT c.relname, upper(a.amname)::name FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relnamespace = $1';
EXECUTE by_function;
SET mot.show_indexes_as_btree = off;
SELECT am.amname, pg_get_indexdef(c.oid) FROM pg_class c JOIN pg_am am ON am.oid = c.relam WHERE c.oid = 'shown_mot.a_desc'::regclass;
SET mot.show_indexes_as_btree = on;
DROP FUNCTION on_both;
DROP SCHEMA shown_heap, shown_mot CASCADE;
