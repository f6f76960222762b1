-- Changes that several indexes of t refuse; none is done.
INSERT INTO t VALUES (1, 1, 1);
INSERT INTO t VALUES (3, 1, 2);
INSERT INTO t VALUES (3, 2, 1);
INSERT INTO t SELECT 1, a, 3 FROM t WHERE a = 2;
UPDATE t SET a = 1, b = 1 WHERE id = 2;
UPDATE t SET id = 1, b = 1 WHERE a = 2;
UPDATE t SET id = id + 0, a = 1, b = 1 FROM (VALUES (2)) v (x) WHERE id = x;
INSERT INTO t VALUES (1, 3, 2) ON CONFLICT (id) DO UPDATE SET a = 2, b = 2;
INSERT INTO t VALUES (3, 1, 2) ON CONFLICT (id) DO NOTHING;
INSERT INTO t SELECT 3, a, 1 FROM t WHERE a = 2 ON CONFLICT (id) DO NOTHING;
MERGE INTO t USING (VALUES (2)) v (x) ON id = x WHEN MATCHED THEN UPDATE SET a = 1, b = 1;
COPY t (id, a, b) FROM stdin;
3	1	2
\.
