-- What 021_upgrade.pl brings through pg_upgrade: every place where rows or their keys can lie.
CREATE TYPE mood AS ENUM ('bad', 'good');
ALTER TYPE mood ADD VALUE 'fair' BEFORE 'good';
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE COLLATION german (provider = icu, locale = 'de-DE');
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE FUNCTION key(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN upper(t) || length(t); END';

-- Columns that are gone, and one that the older rows lack.
CREATE TABLE changed (id int PRIMARY KEY, gone text, kept text) USING mot;
INSERT INTO changed SELECT g, 'gone', 'kept ' || g FROM generate_series(1, 100) g;
ALTER TABLE changed DROP COLUMN gone;
ALTER TABLE changed ADD COLUMN later int NOT NULL DEFAULT 7, ADD COLUMN twice int GENERATED ALWAYS AS (id * 2) STORED;
ALTER TABLE changed ADD COLUMN last text DEFAULT 'missing';
CREATE INDEX changed_last ON changed (last, id);
INSERT INTO changed VALUES (101, 'new', 8, DEFAULT, 'there');
UPDATE changed SET kept = repeat('x', 100000) WHERE id = 5;
DELETE FROM changed WHERE id BETWEEN 10 AND 20;

-- pg_dump makes a column that is gone anew, and not just as it was.
CREATE TABLE gone (small int2, flag bool, v int, t text) USING mot;
INSERT INTO gone SELECT 1, true, g, 't' || g FROM generate_series(1, 20) g;
ALTER TABLE gone DROP COLUMN small, DROP COLUMN flag;
CREATE UNIQUE INDEX gone_v ON gone (v abs_ops);
CREATE INDEX gone_t ON gone (t);

-- Keys that lie with the rows, and those that do not; files that are not the first of their tables.
CREATE TABLE keys (id bigint GENERATED ALWAYS AS IDENTITY, t text, n int, m mood, p pair, d positive) USING mot;
INSERT INTO keys (t, n, m, p, d)
  SELECT chr(97 + g % 26) || g, (g * 37 % 101) * CASE g % 2 WHEN 0 THEN 1 ELSE -1 END,
    (ARRAY['bad', 'fair', 'good'])[1 + g % 3]::mood, ROW(g % 5, 'p' || g)::pair, g FROM generate_series(1, 100) g;
CREATE INDEX keys_gone ON keys (key(t));
DROP INDEX keys_gone;
CREATE INDEX keys_key ON keys (key(t));
CREATE INDEX keys_part ON keys (n) INCLUDE (t) WHERE m = 'good';
CREATE UNIQUE INDEX keys_label ON keys (n abs_ops DESC);
CREATE INDEX keys_german ON keys (t COLLATE german);
CREATE INDEX keys_upper ON keys (upper(t) COLLATE german);
CREATE INDEX keys_nocase ON keys (t COLLATE nocase);
CREATE INDEX keys_mood ON keys (m, p);
ALTER TABLE keys ADD CONSTRAINT keys_later UNIQUE (id) DEFERRABLE INITIALLY DEFERRED,
  ADD CONSTRAINT keys_only EXCLUDE USING btree (d WITH =);
VACUUM FULL keys;
REINDEX INDEX keys_label;

-- Other kinds of tables.
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, t text) USING mot;
INSERT INTO unlogged SELECT g, 'u' || g FROM generate_series(1, 50) g;
CREATE MATERIALIZED VIEW seen USING mot AS SELECT id, left(kept, 10) AS kept FROM changed;
CREATE INDEX ON seen (kept);
CREATE TABLE parts (id int, t text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parts_mot PARTITION OF parts FOR VALUES FROM (0) TO (100) USING mot;
CREATE TABLE parts_heap PARTITION OF parts FOR VALUES FROM (100) TO (200);
INSERT INTO parts SELECT g, 'p' || g FROM generate_series(0, 199) g;
CREATE TABLE child (parent int REFERENCES parts, mot int REFERENCES changed);
INSERT INTO child SELECT g, g FROM generate_series(1, 9) g;
CREATE TABLE empty (id int PRIMARY KEY, t text) USING mot;
CREATE INDEX ON empty (key(t));
CREATE TABLE emptied (id int PRIMARY KEY) USING mot;
INSERT INTO emptied SELECT generate_series(1, 100);
TRUNCATE emptied;
INSERT INTO emptied VALUES (1);
