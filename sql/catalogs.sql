-- What tools read: pg_index, pg_constraint, \d, comments, dependencies. (The views pg_indexes and information_schema.table_constraints
-- leave out foreign tables.)
CREATE FOREIGN TABLE cat (a int, b text, c int NOT NULL, PRIMARY KEY (a, b), UNIQUE (c)) SERVER mot;
CREATE INDEX cat_order ON cat (c DESC, b NULLS FIRST);
CREATE INDEX cat_collate ON cat (b COLLATE "POSIX", a);
\d cat
\d cat_order
\d+ cat_pkey
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'cat'::regclass ORDER BY 1;
SELECT conname, contype, convalidated, condeferrable, conkey, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = 'cat'::regclass AND contype <> 'n' ORDER BY 1;
SELECT indexrelid::regclass, indisunique, indisprimary, indimmediate, indisvalid, indisready, indkey, indoption
FROM pg_index WHERE indrelid = 'cat'::regclass ORDER BY 1;
SELECT table_type FROM information_schema.tables WHERE table_name = 'cat';
SELECT pg_index_column_has_property('cat_order', 1, 'desc') AS "desc", pg_index_column_has_property('cat_order', 2, 'nulls_first') AS nulls_first,
  pg_indexam_has_property((SELECT oid FROM pg_am WHERE amname = 'mot_index'), 'can_unique') AS can_unique;
COMMENT ON INDEX cat_order IS 'an index comment';
COMMENT ON CONSTRAINT cat_pkey ON cat IS 'a constraint comment';
SELECT obj_description('cat_order'::regclass), obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = 'cat_pkey';
-- Functional dependency on the primary key, and what depends on it
SELECT a, b, c FROM cat GROUP BY a, b;
CREATE VIEW cat_view AS SELECT a, b, c FROM cat GROUP BY a, b;
ALTER TABLE cat DROP CONSTRAINT cat_pkey;
DROP VIEW cat_view;
-- Sizes
INSERT INTO cat SELECT i, 'b', i FROM generate_series(1, 1000) i;
SELECT mot.table_size('cat') > 0 AS t, mot.index_size('cat_order') > 0 AS i, mot.total_size('cat') > mot.table_size('cat') AS total;
SELECT mot.table_size('pg_class');
SELECT * FROM mot.check('pg_class');
SELECT indexrelname, is_unique, entries FROM mot.stat_indexes WHERE relname = 'cat' ORDER BY 1;
-- Operator classes agree with btree's operators and functions.
SELECT count(*) FROM pg_opclass c JOIN pg_am m ON m.oid = c.opcmethod WHERE amname = 'mot_index' AND NOT opcdefault;
SELECT o.opcname, o.opcintype::regtype FROM pg_opclass o JOIN pg_am m ON m.oid = o.opcmethod
WHERE amname = 'mot_index' AND NOT EXISTS (
  SELECT 1 FROM pg_opclass b WHERE b.opcmethod = (SELECT oid FROM pg_am WHERE amname = 'btree') AND b.opcintype = o.opcintype AND b.opcdefault) ORDER BY 1;
SELECT f.opfname, ao.amopopr::regoperator FROM pg_amop ao JOIN pg_opfamily f ON f.oid = ao.amopfamily JOIN pg_am m ON m.oid = f.opfmethod
WHERE amname = 'mot_index' AND NOT EXISTS (
  SELECT 1 FROM pg_amop b WHERE b.amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree') AND b.amopopr = ao.amopopr AND b.amopstrategy = ao.amopstrategy)
ORDER BY 1, 2;
SELECT f.opfname, p.amproc::regprocedure FROM pg_amproc p JOIN pg_opfamily f ON f.oid = p.amprocfamily JOIN pg_am m ON m.oid = f.opfmethod
WHERE amname = 'mot_index' AND NOT EXISTS (
  SELECT 1 FROM pg_amproc b JOIN pg_opfamily bf ON bf.oid = b.amprocfamily AND bf.opfmethod = (SELECT oid FROM pg_am WHERE amname = 'btree')
  WHERE b.amprocnum = 1 AND b.amproc = p.amproc AND b.amproclefttype = p.amproclefttype AND b.amprocrighttype = p.amprocrighttype)
ORDER BY 1, 2;
-- Catalog maintenance rewrites our pg_class and pg_index rows along with the rest.
VACUUM FULL pg_index;
REINDEX TABLE pg_class;
SELECT count(*) FROM cat WHERE c = 5;
SELECT rows FROM mot.check('cat');
DROP FOREIGN TABLE cat;
