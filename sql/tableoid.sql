-- A generated column and a CHECK condition may ask which table the row is in, whoever made the row.
CREATE FUNCTION ti_next() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v := NEW.v + 1; RETURN NEW; END';
CREATE TABLE ti_heap (id int PRIMARY KEY, v int, g text GENERATED ALWAYS AS ((tableoid <> 0)::text || v) STORED, CHECK (tableoid <> 0));
CREATE FOREIGN TABLE ti_mot (id int PRIMARY KEY, v int, g text GENERATED ALWAYS AS ((tableoid <> 0)::text || v) STORED, CHECK (tableoid <> 0)) SERVER mot;
CREATE TRIGGER ti_next BEFORE INSERT OR UPDATE ON ti_heap FOR EACH ROW EXECUTE FUNCTION ti_next();
CREATE TRIGGER ti_next BEFORE INSERT OR UPDATE ON ti_mot FOR EACH ROW EXECUTE FUNCTION ti_next();
INSERT INTO ti_heap (id, v) VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO ti_mot (id, v) VALUES (1, 1), (2, 2), (3, 3);
UPDATE ti_heap SET v = 10 WHERE id = 1;
UPDATE ti_mot SET v = 10 WHERE id = 1 RETURNING *;
UPDATE ti_heap SET v = x.v FROM (VALUES (2, 20)) x(id, v) WHERE x.id = ti_heap.id;
UPDATE ti_mot SET v = x.v FROM (VALUES (2, 20)) x(id, v) WHERE x.id = ti_mot.id RETURNING *;
INSERT INTO ti_heap (id, v) VALUES (3, 0) ON CONFLICT (id) DO UPDATE SET v = 30;
INSERT INTO ti_mot (id, v) VALUES (3, 0) ON CONFLICT (id) DO UPDATE SET v = 30 RETURNING *;
COPY ti_heap (id, v) FROM stdin;
4	40
\.
COPY ti_mot (id, v) FROM stdin;
4	40
\.
SELECT * FROM ti_mot ORDER BY id;
TABLE ti_heap EXCEPT TABLE ti_mot;
-- As a partition.
CREATE TABLE ti_all (id int, v int, g text GENERATED ALWAYS AS ((tableoid <> 0)::text || v) STORED) PARTITION BY LIST (id);
CREATE FOREIGN TABLE ti_one PARTITION OF ti_all FOR VALUES IN (1) SERVER mot;
CREATE TABLE ti_two PARTITION OF ti_all FOR VALUES IN (2);
CREATE TRIGGER ti_next BEFORE INSERT OR UPDATE ON ti_all FOR EACH ROW EXECUTE FUNCTION ti_next();
COPY ti_all (id, v) FROM stdin;
1	1
2	1
1	2
\.
INSERT INTO ti_all (id, v) VALUES (1, 3), (2, 3);
UPDATE ti_all SET v = v + 10 WHERE v > 3;
UPDATE ti_all SET id = 1 WHERE id = 2 AND v < 10;
SELECT tableoid::regclass, * FROM ti_all ORDER BY 1, 3;
DROP TABLE ti_heap, ti_all;
DROP FOREIGN TABLE ti_mot;
DROP FUNCTION ti_next;
