-- CREATE FOREIGN TABLE ... SERVER mot: constraints become indexes, named and ordered as for a heap table.
CREATE FOREIGN TABLE ct_plain (a int, b text) SERVER mot;
\d ct_plain
CREATE FOREIGN TABLE ct_column (a int PRIMARY KEY, b text UNIQUE, c int NOT NULL UNIQUE) SERVER mot;
\d ct_column
CREATE FOREIGN TABLE ct_table (
  a int, b text, c numeric(10,2) DEFAULT 1.5, d date,
  UNIQUE (c, d), CONSTRAINT ct_own_name UNIQUE (b), PRIMARY KEY (b, a), CHECK (a > 0)) SERVER mot;
\d ct_table
-- A repeated constraint is merged, and a name is kept.
CREATE FOREIGN TABLE ct_merged (a int PRIMARY KEY, b int, UNIQUE (a), UNIQUE (b), CONSTRAINT ct_named UNIQUE (b)) SERVER mot;
\d ct_merged
-- Names that are taken are avoided.
CREATE TABLE ct_heap_a_key (x int);
CREATE FOREIGN TABLE ct_heap (a int UNIQUE) SERVER mot;
\d ct_heap
CREATE FOREIGN TABLE ct_nulls (a int, b int, UNIQUE NULLS NOT DISTINCT (a, b)) SERVER mot;
\d ct_nulls
INSERT INTO ct_nulls VALUES (1, NULL);
INSERT INTO ct_nulls VALUES (1, NULL);
-- Serial, identity, generated, default.
CREATE FOREIGN TABLE ct_serial (
  id serial PRIMARY KEY, big bigserial, ident int GENERATED ALWAYS AS IDENTITY, v text DEFAULT 'x',
  len int GENERATED ALWAYS AS (length(v)) STORED UNIQUE) SERVER mot;
\d ct_serial
INSERT INTO ct_serial (v) VALUES ('one'), ('two2') RETURNING *;
SELECT pg_get_serial_sequence('ct_serial', 'id'), pg_get_serial_sequence('ct_serial', 'ident');
-- IF NOT EXISTS leaves what is there alone.
CREATE FOREIGN TABLE IF NOT EXISTS ct_plain (a int PRIMARY KEY) SERVER mot;
SELECT count(*) FROM pg_index WHERE indrelid = 'ct_plain'::regclass;
CREATE FOREIGN TABLE ct_plain (a int) SERVER mot;
-- Errors are core's.
CREATE FOREIGN TABLE ct_bad (a int PRIMARY KEY, b int PRIMARY KEY) SERVER mot;
CREATE FOREIGN TABLE ct_bad (a int, PRIMARY KEY (nope)) SERVER mot;
CREATE FOREIGN TABLE ct_bad (a int, PRIMARY KEY (a, a)) SERVER mot;
CREATE FOREIGN TABLE ct_bad (a int, UNIQUE (a, a)) SERVER mot;
SELECT count(*) FROM pg_class WHERE relname LIKE 'ct_bad%';
-- In another schema, quoted names, many columns.
CREATE SCHEMA "Ct Schema";
CREATE FOREIGN TABLE "Ct Schema"."Weird ""Table" ("Key Col" int PRIMARY KEY, "B" text UNIQUE) SERVER mot;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = '"Ct Schema"."Weird ""Table"'::regclass ORDER BY 1;
INSERT INTO "Ct Schema"."Weird ""Table" VALUES (1, 'a');
INSERT INTO "Ct Schema"."Weird ""Table" VALUES (1, 'b');
DROP SCHEMA "Ct Schema" CASCADE;
-- Long names are cut as core cuts them.
CREATE FOREIGN TABLE ct_a_table_with_a_very_long_name_that_fills_the_identifier_lim (
  a_column_with_a_very_long_name int UNIQUE, PRIMARY KEY (a_column_with_a_very_long_name)) SERVER mot;
CREATE FOREIGN TABLE ct_a_table_with_a_very_long_name_that_fills_the_identifier_li2 (
  a_column_with_a_very_long_name int, b int, UNIQUE (a_column_with_a_very_long_name, b)) SERVER mot;
SELECT relname FROM pg_class WHERE relname LIKE 'ct_a_table%' OR relname LIKE 'ct\_a\_%key' ORDER BY 1;
-- Other wrappers are none of our business.
CREATE FOREIGN DATA WRAPPER ct_other;
CREATE SERVER ct_other FOREIGN DATA WRAPPER ct_other;
CREATE FOREIGN TABLE ct_foreign (a int PRIMARY KEY) SERVER ct_other;
CREATE FOREIGN TABLE ct_foreign (a int) SERVER ct_other;
CREATE INDEX ON ct_foreign (a);
DROP FOREIGN DATA WRAPPER ct_other CASCADE;
-- Inheritance and partitions.
CREATE TABLE ct_parent (a int NOT NULL, b text) PARTITION BY LIST (a);
CREATE FOREIGN TABLE ct_part PARTITION OF ct_parent (b DEFAULT 'p', PRIMARY KEY (a)) FOR VALUES IN (1, 2) SERVER mot;
CREATE TABLE ct_part_heap PARTITION OF ct_parent DEFAULT;
\d ct_part
INSERT INTO ct_parent VALUES (1, 'mot'), (2, 'mot'), (3, 'heap') RETURNING tableoid::regclass, *;
INSERT INTO ct_parent VALUES (1, 'again');
SELECT tableoid::regclass, * FROM ct_parent ORDER BY a;
CREATE TABLE ct_base (a int, b int);
CREATE FOREIGN TABLE ct_child (c int, PRIMARY KEY (a)) INHERITS (ct_base) SERVER mot;
INSERT INTO ct_child VALUES (1, 2, 3);
SELECT * FROM ct_base;
INSERT INTO ct_child VALUES (NULL, 2, 3);
SELECT n, rows FROM unnest(ARRAY['ct_column', 'ct_table', 'ct_serial', 'ct_part', 'ct_child', 'ct_nulls']) n, mot.check(n::regclass);
DROP FOREIGN TABLE ct_plain, ct_column, ct_table, ct_merged, ct_heap, ct_nulls, ct_serial, ct_child,
  ct_a_table_with_a_very_long_name_that_fills_the_identifier_lim, ct_a_table_with_a_very_long_name_that_fills_the_identifier_li2;
DROP TABLE ct_parent, ct_base, ct_heap_a_key;
SELECT count(*) FROM pg_class WHERE relname LIKE 'ct\_%';
