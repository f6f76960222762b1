-- Foreign keys, triggers, upserts and moves between partitions: what a write looks up in catalogs while it runs. `.ci/asserts` runs this with
-- core's caches thrown away at every chance (debug_discard_caches).
SET client_min_messages = warning;
CREATE SCHEMA caches_writes;
SET search_path = caches_writes;
CREATE TABLE parents (id int PRIMARY KEY, code text UNIQUE, n int DEFAULT 0) USING mot;
CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE, code text REFERENCES parents (code) ON DELETE SET NULL,
  CHECK (id > 0)) USING mot;
CREATE INDEX ON children (parent);
CREATE TABLE heap_children (id int PRIMARY KEY, parent int REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
INSERT INTO parents SELECT g, 'p' || g FROM generate_series(1, 5) g;
INSERT INTO children SELECT g, g % 5 + 1, 'p' || g % 4 + 1 FROM generate_series(1, 8) g;
INSERT INTO children VALUES (9, 9, 'p1');
INSERT INTO children VALUES (-1, 1, 'p1');
INSERT INTO children VALUES (1, 1, 'p1');
UPDATE children SET parent = 9 WHERE id = 1;
UPDATE children SET parent = 2 WHERE id = 1;
UPDATE parents SET id = 30 WHERE id = 3;
DELETE FROM parents WHERE id = 4;
SELECT * FROM children ORDER BY id;
BEGIN;
INSERT INTO heap_children VALUES (1, 77);
INSERT INTO parents VALUES (77, 'p77');
COMMIT;
DELETE FROM parents WHERE id = 77;
-- triggers of every kind that look, change, and write elsewhere
CREATE TABLE told (what text, o text, n text) USING mot;
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_LEVEL = 'ROW' AND TG_WHEN = 'BEFORE' THEN
    NEW.n := NEW.n + 1;
    RETURN NEW;
  END IF;
  INSERT INTO told VALUES (TG_OP || ' ' || TG_LEVEL, CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_LEVEL = 'ROW' AND TG_OP <> 'DELETE' THEN NEW::text END);
  RETURN NULL;
END $$;
CREATE FUNCTION tell_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO told SELECT 'table', old_row::text, new_row::text FROM olds old_row JOIN news new_row USING (code); RETURN NULL; END $$;
CREATE TRIGGER b BEFORE INSERT OR UPDATE ON parents FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON parents FOR EACH ROW EXECUTE FUNCTION tell();
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON parents DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tell();
CREATE TRIGGER whole AFTER UPDATE ON parents REFERENCING OLD TABLE AS olds NEW TABLE AS news FOR EACH STATEMENT EXECUTE FUNCTION tell_all();
INSERT INTO parents VALUES (6, 'p6'), (5, 'p5') ON CONFLICT (id) DO UPDATE SET n = parents.n + 10 RETURNING *;
UPDATE parents SET n = 100 WHERE id IN (1, 2);
DELETE FROM parents WHERE id = 5 RETURNING *;
SELECT * FROM told ORDER BY what, o, n;
-- upserts: arbiters, several rows, partitions that come and go, WITH
CREATE TABLE p (a int, b int, n int DEFAULT 0, PRIMARY KEY (a, b)) PARTITION BY LIST (a);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1) USING mot;
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (b);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES IN (1) USING mot;
CREATE TABLE p22 PARTITION OF p2 DEFAULT;
CREATE TABLE of_p (a int, b int, FOREIGN KEY (a, b) REFERENCES p ON DELETE CASCADE) USING mot;
INSERT INTO p VALUES (1, 1), (2, 1), (2, 2) ON CONFLICT DO NOTHING;
INSERT INTO p VALUES (1, 1), (2, 1), (2, 2), (1, 2) ON CONFLICT (a, b) DO UPDATE SET n = p.n + 1 RETURNING *;
INSERT INTO of_p VALUES (1, 2), (2, 1);
INSERT INTO of_p VALUES (3, 3);
DELETE FROM p WHERE a = 1 AND b = 2;
UPDATE p SET a = 2, b = 3 WHERE a = 1;
WITH w AS (INSERT INTO p VALUES (2, 3) ON CONFLICT (a, b) DO UPDATE SET n = p.n + 100 RETURNING b)
  INSERT INTO p SELECT 1, b FROM w ON CONFLICT DO NOTHING;
SELECT tableoid::regclass, * FROM p ORDER BY a, b;
SELECT * FROM of_p;
MERGE INTO p USING (VALUES (1, 3), (1, 4)) v(a, b) ON p.a = v.a AND p.b = v.b
  WHEN MATCHED THEN UPDATE SET n = 7 WHEN NOT MATCHED THEN INSERT VALUES (v.a, v.b, 8);
SELECT * FROM p WHERE a = 1 ORDER BY b;
-- a row that one transaction changes and takes back, and locks
BEGIN;
SAVEPOINT s;
UPDATE parents SET code = 'q' || id WHERE id < 3;
ROLLBACK TO s;
SELECT id FROM parents WHERE id = 1 FOR UPDATE;
UPDATE parents SET code = 'r1' WHERE id = 1;
COMMIT;
SELECT * FROM parents ORDER BY id;
-- rights by row
CREATE TABLE owned (id int PRIMARY KEY, who text) USING mot;
ALTER TABLE owned ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON owned USING (who = current_user) WITH CHECK (who = current_user);
CREATE ROLE caches_user;
GRANT ALL ON SCHEMA caches_writes TO caches_user;
GRANT ALL ON owned TO caches_user;
INSERT INTO owned VALUES (1, 'somebody');
SET ROLE caches_user;
INSERT INTO owned VALUES (2, 'caches_user') ON CONFLICT (id) DO UPDATE SET who = 'x' RETURNING *;
INSERT INTO owned VALUES (3, 'somebody');
SELECT * FROM owned;
RESET ROLE;
DROP SCHEMA caches_writes CASCADE;
DROP ROLE caches_user;
