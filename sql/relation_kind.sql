-- Memory-optimized tables that come to the planner as heap tables, as an extension may have it that exchanges tables in rewritten queries.
CREATE FOREIGN TABLE rk (id int PRIMARY KEY, g int, t text NOT NULL, CHECK (g < 1000)) SERVER mot;
CREATE INDEX ON rk (g);
CREATE FOREIGN TABLE rk_other (id int PRIMARY KEY, w int, twice int GENERATED ALWAYS AS (w * 2) STORED) SERVER mot;
CREATE TABLE rk_heap (id int PRIMARY KEY, h int);
INSERT INTO rk SELECT i, i % 10, 't' || i FROM generate_series(1, 200) i;
INSERT INTO rk_other SELECT i, i FROM generate_series(1, 200) i;
INSERT INTO rk_heap SELECT i, i FROM generate_series(1, 200) i;
ANALYZE rk, rk_other, rk_heap;
SET mot.test_switch = 'skip-relation-kind';
-- SELECT: all rows, by an index, by identity.
EXPLAIN (COSTS OFF) SELECT * FROM rk WHERE t < 't12' ORDER BY id;
SELECT count(*), sum(g) FROM rk;
SELECT count(*) FROM rk WHERE t < 't12';
EXPLAIN (COSTS OFF) SELECT * FROM rk WHERE id = 7;
SELECT * FROM rk WHERE id = 7;
SELECT id FROM rk WHERE g = 3 ORDER BY id LIMIT 2;
SELECT id FROM rk WHERE ctid = (SELECT ctid FROM rk WHERE id = 8);
SELECT tableoid::regclass, id FROM rk WHERE id IN (1, 2) ORDER BY id;
SELECT g, count(*) FROM rk WHERE id <= 20 GROUP BY g ORDER BY g LIMIT 2;
-- Joins and subqueries.
SELECT * FROM rk JOIN rk_other USING (id) JOIN rk_heap USING (id) WHERE id BETWEEN 3 AND 4 ORDER BY id;
SELECT h.id, r.t FROM rk_heap h LEFT JOIN rk r ON r.id = h.h AND r.g = 1 WHERE h.id < 3 ORDER BY 1;
SELECT count(*) FROM rk_heap WHERE id IN (SELECT id FROM rk WHERE g = 3);
SELECT count(*) FROM rk r WHERE NOT EXISTS (SELECT FROM rk_other o WHERE o.id = r.id AND o.w > 10);
WITH few AS MATERIALIZED (SELECT * FROM rk WHERE id < 4) SELECT sum(g) FROM few;
SELECT (SELECT max(w) FROM rk_other WHERE w < r.id) FROM rk r WHERE id = 5;
SELECT id FROM rk WHERE id = 1 UNION ALL SELECT id FROM rk_other WHERE id = 2;
-- Row locks.
SELECT id FROM rk WHERE g = 3 AND id < 20 ORDER BY id FOR UPDATE;
SELECT r.id, o.w FROM rk r JOIN rk_other o USING (id) WHERE r.id = 9 FOR NO KEY UPDATE OF r FOR SHARE OF o NOWAIT;
SELECT id FROM rk WHERE id = 9 FOR KEY SHARE SKIP LOCKED;
-- INSERT.
INSERT INTO rk VALUES (1001, 1, 'new');
INSERT INTO rk VALUES (1002, 2, 'new'), (1003, 3, 'new') RETURNING *;
INSERT INTO rk SELECT id + 1000, h, 'heap' FROM rk_heap WHERE id BETWEEN 4 AND 5 RETURNING id;
INSERT INTO rk_other SELECT id, g FROM rk WHERE id > 1000 RETURNING *;
INSERT INTO rk VALUES (1001, 1, 'again');
INSERT INTO rk VALUES (1009, 1000, 'checked');
INSERT INTO rk VALUES (1009, 1, NULL);
INSERT INTO rk VALUES (1001, 1, 'again') ON CONFLICT DO NOTHING;
INSERT INTO rk VALUES (1001, 1, 'again') ON CONFLICT (id) DO NOTHING RETURNING *;
INSERT INTO rk VALUES (1001, 5, 'again'), (1010, 5, 'first') ON CONFLICT (id) DO UPDATE SET g = rk.g + excluded.g, t = excluded.t RETURNING *;
INSERT INTO rk VALUES (1001, 5, 'not') ON CONFLICT (id) DO UPDATE SET t = 'not' WHERE rk.g = 0;
WITH made AS (INSERT INTO rk VALUES (1011, 1, 'made') RETURNING id) SELECT * FROM made;
-- UPDATE and DELETE: in the scan, and row by row.
UPDATE rk SET g = g + 1 WHERE id = 1001;
UPDATE rk SET g = 7 WHERE id > 1000 AND t = 'new' RETURNING id, g;
UPDATE rk SET t = o.twice FROM rk_other o WHERE o.id = rk.id AND rk.id IN (1, 2) RETURNING rk.*;
UPDATE rk_other SET w = 100 WHERE id = 1 RETURNING *;
UPDATE rk SET id = 2001 WHERE id = 1011 RETURNING id;
UPDATE rk SET g = 2000 WHERE id = 1;
DELETE FROM rk WHERE id = 2001;
DELETE FROM rk USING rk_heap h WHERE h.id + 1000 = rk.id RETURNING rk.id, h.h;
DELETE FROM rk WHERE id IN (SELECT id FROM rk_other WHERE w = 200) RETURNING id;
BEGIN;
DECLARE here CURSOR FOR SELECT * FROM rk WHERE id = 10 FOR UPDATE;
FETCH here;
UPDATE rk SET t = 'current' WHERE CURRENT OF here RETURNING *;
DELETE FROM rk WHERE CURRENT OF here;
COMMIT;
-- Triggers, views, COPY, functions.
CREATE FUNCTION rk_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE NOTICE '% %: % %', TG_WHEN, TG_OP, to_jsonb(old), to_jsonb(new);
  RETURN coalesce(new, old);
END $$;
CREATE TRIGGER rk_before BEFORE INSERT OR UPDATE OR DELETE ON rk FOR EACH ROW EXECUTE FUNCTION rk_note();
CREATE TRIGGER rk_after AFTER INSERT OR UPDATE OR DELETE ON rk FOR EACH ROW EXECUTE FUNCTION rk_note();
INSERT INTO rk VALUES (3001, 1, 'x') ON CONFLICT (id) DO UPDATE SET g = 2;
INSERT INTO rk VALUES (3001, 1, 'x') ON CONFLICT (id) DO UPDATE SET g = 2;
UPDATE rk SET g = 3 WHERE id = 3001;
DELETE FROM rk WHERE id = 3001;
DROP TRIGGER rk_before ON rk;
DROP TRIGGER rk_after ON rk;
CREATE VIEW rk_view AS SELECT * FROM rk WHERE g < 5 WITH CHECK OPTION;
INSERT INTO rk_view VALUES (3002, 4, 'view');
INSERT INTO rk_view VALUES (3003, 5, 'view');
UPDATE rk_view SET g = 6 WHERE id = 3002;
UPDATE rk_view SET t = 'seen' WHERE id = 3002 RETURNING *;
DELETE FROM rk_view WHERE id = 3002;
COPY rk FROM stdin;
4001	1	copied
\.
COPY (SELECT * FROM rk WHERE id = 4001) TO stdout;
CREATE FUNCTION rk_inlined(wanted int) RETURNS SETOF rk LANGUAGE sql STABLE AS 'SELECT * FROM rk WHERE id = wanted';
SELECT * FROM rk_inlined(4001);
DO $$
DECLARE found rk;
BEGIN
  FOR turn IN 1 .. 3 LOOP
    UPDATE rk SET g = g + 1 WHERE id = 4001 RETURNING * INTO found;
    SELECT * INTO found FROM rk WHERE id = found.id;
  END LOOP;
  RAISE NOTICE '%', found;
END $$;
-- Inheritance and partitions.
CREATE FOREIGN TABLE rk_child () INHERITS (rk) SERVER mot;
INSERT INTO rk_child VALUES (5001, 1, 'child');
SELECT tableoid::regclass, id FROM rk WHERE id > 4000 ORDER BY id;
UPDATE rk SET t = 'both' WHERE id > 4000 RETURNING tableoid::regclass, id;
SELECT id FROM rk WHERE id > 4000 ORDER BY id FOR UPDATE;
DELETE FROM rk WHERE id > 4000 RETURNING id;
DROP FOREIGN TABLE rk_child;
CREATE TABLE rk_parted (a int, b int) PARTITION BY LIST (a);
CREATE FOREIGN TABLE rk_part1 PARTITION OF rk_parted FOR VALUES IN (1) SERVER mot;
CREATE TABLE rk_part2 PARTITION OF rk_parted FOR VALUES IN (2);
INSERT INTO rk_parted VALUES (1, 1), (2, 2) RETURNING tableoid::regclass, *;
INSERT INTO rk_part1 VALUES (1, 3);
INSERT INTO rk_part1 VALUES (2, 3);
UPDATE rk_parted SET b = b + 10 WHERE b < 3 RETURNING tableoid::regclass, *;
SELECT * FROM rk_part1 ORDER BY b;
DROP TABLE rk_parted;
-- Plans that are kept: compiled, made again when the table changes, and used when entries are right again.
SET plan_cache_mode = force_generic_plan;
PREPARE rk_get(int) AS SELECT * FROM rk WHERE id = $1;
PREPARE rk_put(int) AS INSERT INTO rk VALUES ($1, 1, 'kept') RETURNING id;
PREPARE rk_set(int) AS UPDATE rk SET g = g + 1 WHERE id = $1;
EXECUTE rk_put(6001);
EXECUTE rk_set(6001);
EXECUTE rk_get(6001);
RESET mot.test_switch;
EXECUTE rk_put(6002);
EXECUTE rk_set(6002);
EXECUTE rk_get(6002);
SET mot.test_switch = 'skip-relation-kind';
ALTER FOREIGN TABLE rk ADD COLUMN more int DEFAULT 1;
EXECUTE rk_put(6003);
EXECUTE rk_set(6003);
DEALLOCATE ALL;
RESET plan_cache_mode;
SELECT * FROM rk WHERE id = 6003;
-- TRUNCATE and what else goes by the table itself.
TRUNCATE rk;
SELECT count(*) FROM rk;
RESET mot.test_switch;
SELECT rows FROM mot.check('rk_other');
DROP VIEW rk_view;
DROP FUNCTION rk_inlined, rk_note;
DROP FOREIGN TABLE rk, rk_other;
DROP TABLE rk_heap;
