-- Keys of a primary key have no mark for NULL: core takes no NOT NULL away from its columns.
-- So eight bytes are one step of the index.
CREATE TABLE keyed (id bigint PRIMARY KEY, other bigint NOT NULL UNIQUE) USING mot;
INSERT INTO keyed SELECT g, g FROM generate_series(1, 20000) g;
SELECT pg_relation_size('keyed_pkey') < 0.95 * pg_relation_size('keyed_other_key') AS is_smaller;
SELECT rows FROM mot.check('keyed');
-- rebuilt beside writers, then without its promise
REINDEX INDEX CONCURRENTLY keyed_pkey;
INSERT INTO keyed VALUES (1, 20001);
ALTER TABLE keyed ALTER id DROP NOT NULL;
ALTER TABLE keyed DROP CONSTRAINT keyed_pkey, ALTER id DROP NOT NULL;
INSERT INTO keyed VALUES (NULL, 20001), (NULL, 20002);
ALTER TABLE keyed ADD PRIMARY KEY (id);
DELETE FROM keyed WHERE id IS NULL;
ALTER TABLE keyed ADD PRIMARY KEY (id);
SELECT rows FROM mot.check('keyed');
DROP TABLE keyed;
-- a cursor's snapshot sees NULL in a row that has got its key since, in the same transaction
CREATE TABLE filled (id bigint, v int) USING mot;
CREATE FUNCTION filled_in_order() RETURNS text STABLE LANGUAGE plpgsql AS
  $$ BEGIN RETURN (SELECT string_agg(format('%s %s', coalesce(q.id::text, 'none'), q.v), ', ') FROM (SELECT * FROM filled ORDER BY id OFFSET 0) q); END $$;
BEGIN;
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
SET LOCAL jit = off;
INSERT INTO filled VALUES (NULL, 1), (2, 2);
DECLARE before CURSOR FOR SELECT filled_in_order();
UPDATE filled SET id = 1 WHERE v = 1;
ALTER TABLE filled ADD PRIMARY KEY (id);
FETCH before;
SELECT filled_in_order();
SELECT indcheckxmin FROM pg_index WHERE indrelid = 'filled'::regclass;
COMMIT;
SELECT rows FROM mot.check('filled');
-- rebuilt when no state has NULL any more
REINDEX TABLE filled;
SELECT * FROM filled WHERE id = 1;
SELECT rows FROM mot.check('filled');
DROP TABLE filled;
DROP FUNCTION filled_in_order;
-- an enum as the only column, both ways, and the largest bigint
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE moods (m mood, n bigint, PRIMARY KEY (m, n)) USING mot;
INSERT INTO moods SELECT m, n FROM unnest(enum_range(NULL::mood)) m, generate_series(1, 40) n;
INSERT INTO moods VALUES ('happy', 9223372036854775807), ('sad', -9223372036854775808);
SET enable_seqscan = off;
SET enable_sort = off;
SET jit = off;
SELECT * FROM moods ORDER BY m DESC, n DESC LIMIT 3;
SELECT * FROM moods ORDER BY m, n LIMIT 3;
SELECT count(*), min(n), max(n) FROM moods WHERE m >= 'ok' AND n > 39;
SELECT * FROM moods WHERE (m, n) > ('happy', 40);
SELECT * FROM moods WHERE m = 'happy' AND n IN (9223372036854775807, NULL, 1) ORDER BY n;
SELECT count(*) FROM moods WHERE n IS NULL;
SELECT count(*) FROM moods WHERE m IS NOT NULL;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM moods ORDER BY m, n;
MOVE 60 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 2 FROM c;
COMMIT;
RESET enable_seqscan;
RESET enable_sort;
RESET jit;
SELECT rows FROM mot.check('moods');
DROP TABLE moods;
DROP TYPE mood;
