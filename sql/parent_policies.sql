-- Policies of a heap table over memory-optimized partitions and children: who comes by the parent is held to them, as with heap ones.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mot;
CREATE SCHEMA parent_policies;
SET search_path = parent_policies;
CREATE FUNCTION state_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  EXECUTE statement;
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n || ' rows';
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate || ' ' || sqlerrm;
END $$;
CREATE TABLE heap (a int, b int CHECK (b < 100)) PARTITION BY LIST (a);
CREATE TABLE heap_1 PARTITION OF heap FOR VALUES IN (1);
CREATE TABLE heap_2 PARTITION OF heap FOR VALUES IN (2);
CREATE TABLE mot (a int, b int CHECK (b < 100)) PARTITION BY LIST (a);
CREATE TABLE mot_1 PARTITION OF mot FOR VALUES IN (1);
CREATE FOREIGN TABLE mot_2 PARTITION OF mot FOR VALUES IN (2) SERVER mot;
CREATE TABLE heap_parent (a int, b int CHECK (b < 100));
CREATE TABLE heap_child () INHERITS (heap_parent);
CREATE TABLE mot_parent (a int, b int CHECK (b < 100));
CREATE FOREIGN TABLE mot_child () INHERITS (mot_parent) SERVER mot;
CREATE FUNCTION add_one() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.b := NEW.b + 1; RETURN NEW; END';
CREATE ROLE mot_policies_reader;
GRANT USAGE ON SCHEMA parent_policies TO mot_policies_reader;
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY '{heap,mot,heap_parent,mot_parent}'::text[] LOOP
    EXECUTE format('GRANT ALL ON %I TO mot_policies_reader', t);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
    EXECUTE format('CREATE POLICY s ON %I FOR SELECT USING (b < 1000)', t);
    EXECUTE format('CREATE POLICY i ON %I FOR INSERT WITH CHECK (b < 50)', t);
    EXECUTE format('CREATE POLICY u ON %I FOR UPDATE USING (b < 60) WITH CHECK (b < 55)', t);
    EXECUTE format('CREATE POLICY d ON %I FOR DELETE USING (b > 10)', t);
  END LOOP;
END $$;
INSERT INTO heap_child VALUES (2, 40), (3, 5), (4, 70);
INSERT INTO mot_child VALUES (2, 40), (3, 5), (4, 70);
SET ROLE mot_policies_reader;
SELECT statement, replace(state_of(replace(statement, '@', 'heap')), 'heap', '@') AS heap, replace(state_of(replace(statement, '@', 'mot')), 'mot', '@') AS mot
FROM unnest(ARRAY[
  'INSERT INTO @ VALUES (1, 70)',
  'INSERT INTO @ VALUES (2, 70)',
  'INSERT INTO @ VALUES (2, 700)',
  'INSERT INTO @ VALUES (2, 40), (1, 40), (2, 30), (2, 5)',
  'INSERT INTO @ VALUES (2, 70) ON CONFLICT DO NOTHING',
  'UPDATE @ SET b = 58 WHERE a = 2 AND b = 40',
  'UPDATE @ SET b = b + 14 WHERE a = 2 AND b = 40',
  'UPDATE @ SET b = 700 WHERE a = 2',
  'UPDATE @ SET a = 2, b = 58 WHERE a = 1',
  'UPDATE @ SET a = 2, b = 53 WHERE a = 1',
  'DELETE FROM @ WHERE b < 40',
  'SELECT * FROM @',
  'INSERT INTO @_parent VALUES (2, 70)',
  'UPDATE @_parent SET b = 58 WHERE a = 2',
  'UPDATE @_parent SET b = 52 WHERE a = 2',
  'UPDATE @_parent SET b = 52 WHERE a = 4',
  'DELETE FROM @_parent'
]) WITH ORDINALITY s(statement, n) ORDER BY n;
RESET ROLE;
SELECT * FROM heap_2 EXCEPT SELECT * FROM mot_2;
SELECT * FROM mot_2 ORDER BY b;
SELECT * FROM mot_child ORDER BY b;
-- The row as a trigger leaves it is judged.
CREATE TRIGGER add_one BEFORE INSERT OR UPDATE ON heap_2 FOR EACH ROW EXECUTE FUNCTION add_one();
CREATE TRIGGER add_one BEFORE INSERT OR UPDATE ON mot_2 FOR EACH ROW EXECUTE FUNCTION add_one();
SET ROLE mot_policies_reader;
SELECT statement, replace(state_of(replace(statement, '@', 'heap')), 'heap', '@') AS heap, replace(state_of(replace(statement, '@', 'mot')), 'mot', '@') AS mot
FROM unnest(ARRAY[
  'INSERT INTO @ VALUES (2, 49)',
  'INSERT INTO @ VALUES (2, 48)',
  'UPDATE @ SET b = 54 WHERE a = 2 AND b = 49',
  'UPDATE @ SET b = 53 WHERE a = 2 AND b = 49'
]) WITH ORDINALITY s(statement, n) ORDER BY n;
RESET ROLE;
SELECT * FROM mot_2 ORDER BY b;
-- MERGE whose plan has left the partition out may put rows into it; policies are not asked then.
CREATE TABLE source (a int, b int);
INSERT INTO source VALUES (1, 20), (2, 30);
MERGE INTO mot USING source s ON mot.a = s.a AND mot.a = 1 WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b);
GRANT SELECT ON source TO mot_policies_reader;
SET ROLE mot_policies_reader;
MERGE INTO mot USING source s ON mot.a = s.a AND mot.a = 1 WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b);
RESET ROLE;
SELECT * FROM mot ORDER BY a, b;
-- The table by its own name has none.
INSERT INTO mot_2 VALUES (2, 90);
SELECT rows FROM mot.check('mot_2');
DROP SCHEMA parent_policies CASCADE;
DROP ROLE mot_policies_reader;
