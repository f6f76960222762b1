-- Members of btree's families are rows of a catalog, also between operators and families that nobody can drop: a superuser may write them. A process keeps
-- what they say until they change, or the change is rolled back. Each answer on a memory-optimized table is beside that on its ordinary twin.
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA family_members;
SET search_path = family_members, pg_catalog;
CREATE FOREIGN TABLE rows (id uuid PRIMARY KEY, n int) SERVER mot;
CREATE TABLE heap_rows (id uuid PRIMARY KEY, n int);
INSERT INTO rows SELECT ('00000000-0000-0000-0000-' || lpad(g::text, 12, '0'))::uuid, g FROM generate_series(1, 20000) g;
INSERT INTO heap_rows SELECT * FROM rows;
ANALYZE rows;
ANALYZE heap_rows;
-- Which plans have the condition as one of the index, and how many rows each finds.
CREATE FUNCTION found(condition text) RETURNS TABLE (relation text, by_index boolean, rows bigint) LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOREACH relation IN ARRAY ARRAY['rows', 'heap_rows'] LOOP
    by_index := false;
    FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT * FROM family_members.%I WHERE %s', relation, condition) LOOP
      by_index := by_index OR line ~ 'Index Cond';
    END LOOP;
    EXECUTE format('SELECT count(*) FROM family_members.%I WHERE %s', relation, condition) INTO rows;
    RETURN NEXT;
  END LOOP;
END $$;
\set few 'id <= \'00000000-0000-0000-0000-000000000005\''
SELECT * FROM found(:'few');
-- By ordinary means nobody takes a pinned member out.
ALTER OPERATOR FAMILY uuid_ops USING btree DROP OPERATOR 2 (uuid, uuid);

-- Taken out: no index has the condition.
BEGIN;
DELETE FROM pg_amop WHERE amopopr = '<= (uuid, uuid)'::regoperator AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
SELECT * FROM found(:'few');
ROLLBACK;
SELECT * FROM found(:'few');

-- Turned under a savepoint, used for the first time in a process, and rolled back.
\c -
SET client_min_messages = warning;
SET search_path = family_members, pg_catalog;
BEGIN;
SAVEPOINT s;
DELETE FROM pg_amop WHERE amopopr = '>= (uuid, uuid)'::regoperator AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
UPDATE pg_amop SET amopstrategy = 4
  WHERE amopopr = '<= (uuid, uuid)'::regoperator AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
EXPLAIN (COSTS OFF) SELECT * FROM rows WHERE id <= '00000000-0000-0000-0000-000000000005' AND n > 0;
ROLLBACK TO s;
SELECT * FROM found(:'few');
COMMIT;
-- The same by the end of the transaction, with an error.
\c -
SET client_min_messages = warning;
SET search_path = family_members, pg_catalog;
BEGIN;
DELETE FROM pg_amop WHERE amopopr = '>= (uuid, uuid)'::regoperator AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
UPDATE pg_amop SET amopstrategy = 4
  WHERE amopopr = '<= (uuid, uuid)'::regoperator AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree');
EXPLAIN (COSTS OFF) SELECT * FROM rows WHERE id <= '00000000-0000-0000-0000-000000000005' AND n > 0;
SELECT 1 / 0;
COMMIT;
SELECT * FROM found(:'few');
RESET search_path;
DROP SCHEMA family_members CASCADE;
