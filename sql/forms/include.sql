-- Run by am_include.sql for each access method, which :method names.
SELECT 'am_include_' || :'method' AS schema \gset
CREATE SCHEMA :schema;
SET search_path = :schema;
SET default_table_access_method = :method;
CREATE TABLE t (id int, a int, b text, j jsonb, p point, PRIMARY KEY (id) INCLUDE (a, p), UNIQUE (a) INCLUDE (b, j));
CREATE INDEX t_b ON t (b) INCLUDE (j, id);
INSERT INTO t SELECT g, g * 10, 'b' || g % 3, jsonb_build_object('g', g), point(g, g) FROM generate_series(1, 9) g;
SELECT indexrelid::regclass::text COLLATE "C" AS index, indnatts, indnkeyatts, indkey, replace(pg_get_indexdef(indexrelid), 'mot_index', 'btree') AS definition FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;
SELECT conname::text COLLATE "C" AS name, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 't'::regclass AND contype IN ('p', 'u') ORDER BY 1;
-- uniqueness is that of the key columns
INSERT INTO t VALUES (1, 100, 'x', NULL, NULL);
INSERT INTO t VALUES (10, 10, 'x', NULL, NULL);
UPDATE t SET id = 2 WHERE id = 1;
INSERT INTO t VALUES (11, NULL, NULL, NULL, NULL), (12, NULL, NULL, NULL, NULL);
INSERT INTO t VALUES (1, 100) ON CONFLICT (id) DO UPDATE SET j = '{"up": 1}' RETURNING id, a, j;
INSERT INTO t VALUES (100, 10) ON CONFLICT (a) DO UPDATE SET b = 'upserted' RETURNING id, a, b;
INSERT INTO t VALUES (100, 10) ON CONFLICT (a, b) DO NOTHING;
INSERT INTO t VALUES (100, 10) ON CONFLICT ON CONSTRAINT t_a_b_j_key DO NOTHING RETURNING id;
-- an included column alone
UPDATE t SET j = jsonb_build_object('n', id), p = NULL WHERE id < 4;
UPDATE t SET b = 'moved' WHERE a = 20;
SELECT id, a, b, j, p::text FROM t WHERE id <= 3 ORDER BY id;
-- scans by key columns, and conditions on included ones
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT id, j FROM t WHERE a = 30 AND b = 'b0';
SELECT id FROM t WHERE b = 'b1' AND id > 4 ORDER BY id;
SELECT id, a FROM t WHERE id BETWEEN 3 AND 5 ORDER BY id;
SELECT a FROM t WHERE id IN (3, 4) AND a > 30;
PREPARE by_key (int) AS SELECT a, b FROM t WHERE id = $1;
EXECUTE by_key (5);
EXECUTE by_key (6);
PREPARE set_included (int, jsonb) AS UPDATE t SET j = $2 WHERE id = $1;
EXECUTE set_included (5, '{"set": 5}');
EXECUTE set_included (6, '{"set": 6}');
SELECT id, j FROM t WHERE id IN (5, 6) ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;
-- a reference to such a key, and a replica identity
CREATE TABLE child (t int REFERENCES t, ta int REFERENCES t (a) ON UPDATE CASCADE);
INSERT INTO child VALUES (5, 50);
INSERT INTO child VALUES (77, NULL);
DELETE FROM t WHERE id = 5;
UPDATE t SET a = 55 WHERE id = 5;
SELECT * FROM child;
ALTER TABLE t REPLICA IDENTITY USING INDEX t_pkey;
-- what is made later, and beside writers
CREATE UNIQUE INDEX CONCURRENTLY t_j ON t (id, a) INCLUDE (p, j);
CREATE UNIQUE INDEX CONCURRENTLY t_bad ON t (b) INCLUDE (id);
SELECT indexrelid::regclass::text COLLATE "C", indisvalid, indisready FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;
DROP INDEX t_bad;
REINDEX INDEX CONCURRENTLY t_j;
REINDEX TABLE t;
ALTER TABLE t ADD CONSTRAINT named UNIQUE USING INDEX t_j;
ALTER TABLE t ADD UNIQUE (b) INCLUDE (a);
-- types and columns change
DROP TABLE child;
ALTER TABLE t ALTER p TYPE text USING p::text;
ALTER TABLE t ALTER a TYPE bigint;
CREATE INDEX t_added ON t (id) INCLUDE (b);
ALTER TABLE t DROP COLUMN b CASCADE;
ALTER TABLE t ADD COLUMN d text DEFAULT 'd';
CREATE INDEX t_d ON t (d) INCLUDE (a);
SELECT replace(pg_get_indexdef(indexrelid), 'mot_index', 'btree') FROM pg_index WHERE indrelid = 't'::regclass ORDER BY indexrelid::regclass::text COLLATE "C";
SELECT id, a, j, d FROM t WHERE id = 5;
SELECT count(*) FROM t WHERE d = 'd';
-- a copy of the definition, and partitions
CREATE TABLE copied (LIKE t INCLUDING INDEXES);
SELECT replace(pg_get_indexdef(indexrelid), 'mot_index', 'btree') FROM pg_index WHERE indrelid = 'copied'::regclass ORDER BY indexrelid::regclass::text COLLATE "C";
CREATE TABLE parent (a int, b int, c jsonb, PRIMARY KEY (a) INCLUDE (b, c)) PARTITION BY RANGE (a);
SELECT format('CREATE TABLE p1 PARTITION OF parent FOR VALUES FROM (0) TO (10) USING %I', :'method') \gexec
SELECT format('CREATE TABLE p2 (a int NOT NULL, b int, c jsonb) USING %I', :'method') \gexec
CREATE UNIQUE INDEX p2_a ON p2 (a) INCLUDE (b, c);
ALTER TABLE parent ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
INSERT INTO parent VALUES (1, 1, '1'), (11, 11, '11');
INSERT INTO parent VALUES (1, 2, '1') ON CONFLICT (a) DO UPDATE SET b = 100 RETURNING *;
INSERT INTO parent VALUES (11, 2, '1');
CREATE INDEX ON parent (b) INCLUDE (c);
SELECT inhrelid::regclass::text COLLATE "C" AS index, inhparent::regclass FROM pg_inherits WHERE inhparent IN ('parent_pkey'::regclass, 'parent_b_c_idx'::regclass) ORDER BY 1;
-- to the other access method and back
CREATE TABLE goes (a int PRIMARY KEY, b int, c jsonb, UNIQUE (b) INCLUDE (c));
INSERT INTO goes VALUES (1, 1, '1');
ALTER TABLE goes SET ACCESS METHOD heap;
INSERT INTO goes VALUES (2, 1, '2');
SELECT format('ALTER TABLE goes SET ACCESS METHOD %I', :'method') \gexec
INSERT INTO goes VALUES (2, 1, '2');
INSERT INTO goes VALUES (2, 2, '2');
SELECT * FROM goes ORDER BY a;
DEALLOCATE ALL;
RESET default_table_access_method;
