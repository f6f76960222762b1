-- Which of core's types have an encoding as keys, and which have labels.
\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SELECT coalesce(k.kind, 'labels') || ': ' || string_agg(t.oid::regtype::text, ', ' ORDER BY t.oid::regtype::text COLLATE "C")
FROM pg_type t LEFT JOIN mot.key_kind(t.oid) k ON true
WHERE t.oid < 16384 AND t.typtype IN ('b', 'r', 'm') AND (t.typcategory <> 'A' OR t.oid = 'oidvector'::regtype)
  AND EXISTS (SELECT FROM pg_opclass c WHERE c.opcdefault AND c.opcmethod = 403 AND (c.opcintype = t.oid OR c.opcintype = CASE t.typtype WHEN 'r' THEN 'anyrange'::regtype WHEN 'm' THEN 'anymultirange'::regtype END))
GROUP BY k.kind ORDER BY coalesce(k.kind, 'labels') COLLATE "C";
-- What the engine takes for the layout of a type's values is what pg_type says.
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE EXTENSION seg;
CREATE EXTENSION isn;
CREATE TYPE key_mood AS ENUM ('sad', 'ok');
CREATE TYPE key_pair AS (n int, m key_mood);
CREATE TYPE key_moods AS RANGE (subtype = key_mood);
CREATE TYPE key_pairs AS RANGE (subtype = key_pair);
CREATE DOMAIN key_few AS int8 CHECK (value < 9);
SELECT t.oid::regtype, k.*, t.typlen, t.typalign, t.typbyval FROM pg_type t, mot.key_kind(t.oid) k
WHERE t.typtype <> 'p' AND (k.bytes, k.alignment, k.is_by_value) IS DISTINCT FROM
  (t.typlen, CASE t.typalign WHEN 'c' THEN 1 WHEN 's' THEN 2 WHEN 'i' THEN 4 WHEN 'd' THEN 8 END, t.typbyval);
SELECT t || ': ' || coalesce((SELECT kind FROM mot.key_kind(t::regtype)), 'labels')
FROM unnest(ARRAY['hstore', 'ltree', 'seg', 'isbn', 'key_mood', 'key_pair', 'key_moods', 'key_pairs', 'key_few', 'key_few[]', 'key_pair[]', 'key_moods[]', 'int8multirange', 'text[]']) t;
-- What an index has: types, classes and collations of its own, expressions.
CREATE COLLATION key_blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION key_blinder (provider = icu, locale = 'und-u-ka-shifted-ks-level2', deterministic = false);
CREATE TABLE key_columns (i int, t text, m key_mood, p key_pair, r int4range, a text[], s seg, b text COLLATE key_blind, c text COLLATE key_blinder) USING mot;
CREATE INDEX ON key_columns (i, t, m, p, r, a, s);
CREATE INDEX ON key_columns (lower(t), (i::numeric)) WHERE i > 0;
CREATE INDEX ON key_columns (t text_pattern_ops, p record_image_ops);
CREATE INDEX ON key_columns (b, c);
SELECT i::regclass || ': ' || mot.index_key_kinds(i)::text FROM pg_index x, LATERAL (SELECT x.indexrelid) y (i) WHERE indrelid = 'key_columns'::regclass ORDER BY 1;
DROP TABLE key_columns;
DROP COLLATION key_blind, key_blinder;
DROP TYPE key_pairs, key_moods, key_pair, key_mood;
DROP DOMAIN key_few;
DROP EXTENSION citext, hstore, ltree, seg, isn;
