-- Indexes on columns whose value in older rows is in the catalog (ADD COLUMN ... DEFAULT). Heap tables are the oracle.
SET client_min_messages = warning;
CREATE SCHEMA am_missing;
SET search_path = am_missing;
-- Runs a statement on the memory-optimized table m and on the heap table h; says what differs, or the outcome of both.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text; rows bigint;
BEGIN
  IF statement ~* '^(select|with)|returning' THEN
    EXECUTE 'WITH q AS (' || statement || ') SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM q' INTO result;
    RETURN COALESCE(result, 'nothing');
  END IF;
  EXECUTE statement;
  GET DIAGNOSTICS rows = ROW_COUNT;
  RETURN 'done: ' || rows;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ': ' || SQLERRM;
END $$;
CREATE FUNCTION alike(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE of_m text := outcome(statement); of_h text := outcome(regexp_replace(statement, '\mm(?!in|ax)', 'h', 'g'));
BEGIN
  of_h := regexp_replace(of_h, '"h', '"m', 'g');
  RETURN CASE WHEN of_m IS NOT DISTINCT FROM of_h THEN of_m ELSE 'm: ' || of_m || E'\nh: ' || of_h END;
END $$;
CREATE TABLE m (a int PRIMARY KEY, b text) USING mot;
CREATE TABLE h (a int PRIMARY KEY, b text);
\pset format unaligned
\pset tuples_only on
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET jit = off;
SELECT alike('INSERT INTO m SELECT g, ''b'' || g FROM generate_series(1, 6) g');
SELECT alike('ALTER TABLE m ADD COLUMN c int DEFAULT 7');
SELECT alike('INSERT INTO m VALUES (7, ''b7'', 8), (8, ''b8'', NULL), (9, ''b9'', 6)');
SELECT alike('UPDATE m SET b = ''x'' WHERE a = 1');
-- older rows have the value twice: no unique index; a plain one finds all of them
SELECT alike('CREATE UNIQUE INDEX m_c ON m (c)');
SELECT alike('CREATE INDEX m_c ON m (c)');
SELECT alike('CREATE INDEX m_c_desc ON m (c DESC NULLS LAST, b)');
SELECT alike('CREATE UNIQUE INDEX m_a_c ON m (a, c)');
SELECT alike('SELECT * FROM m WHERE c = 7');
SELECT alike('SELECT a FROM m WHERE c > 6 AND c < 8');
SELECT alike('SELECT a FROM m WHERE c IS NULL');
SELECT alike('SELECT a FROM m WHERE c = 7 AND b > ''b3''');
SELECT alike('SELECT a FROM m WHERE a = 3 AND c = 7');
SELECT alike('SELECT count(*), sum(c), min(c), max(c) FROM m');
SELECT alike('SELECT c, count(*) FROM m GROUP BY c');
SELECT a, c FROM m ORDER BY c, a;
SELECT a, c FROM m ORDER BY c DESC NULLS LAST, b;
-- changes of older rows: of another column, to the value that they show, to another one, to NULL; they go
SELECT alike('UPDATE m SET b = b || ''!'' WHERE c = 7 AND a < 3 RETURNING *');
SELECT alike('UPDATE m SET c = 7 WHERE a = 3 RETURNING *');
SELECT alike('UPDATE m SET c = 70 WHERE a = 4 RETURNING *');
SELECT alike('UPDATE m SET c = NULL WHERE a = 5 RETURNING *');
SELECT alike('DELETE FROM m WHERE a = 6 RETURNING *');
SELECT alike('SELECT a FROM m WHERE c = 7');
SELECT alike('SELECT a FROM m WHERE c = 70');
SELECT alike('SELECT a FROM m WHERE c IS NULL');
SELECT rows FROM mot.check('m');
-- a unique key on a later column: ON CONFLICT meets an older row, and so does a duplicate
TRUNCATE m, h;
SELECT alike('SELECT a FROM m WHERE c = 7');
SELECT alike('INSERT INTO m (a, b) VALUES (1, ''one'')');
SELECT alike('ALTER TABLE m ADD COLUMN d numeric(10, 2) NOT NULL DEFAULT 1.50, ADD COLUMN e text');
SELECT alike('ALTER TABLE m ADD CONSTRAINT m_d UNIQUE (d)');
SELECT alike('INSERT INTO m VALUES (2, ''two'', 2, 1.5)');
SELECT alike('INSERT INTO m VALUES (2, ''two'', 2, 1.5) ON CONFLICT (d) DO NOTHING');
SELECT alike('INSERT INTO m VALUES (2, ''two'', 2, 1.5) ON CONFLICT (d) DO UPDATE SET b = excluded.b || m.d RETURNING *');
SELECT alike('INSERT INTO m VALUES (2, ''two'', 2, 2.5) RETURNING *');
SELECT alike('UPDATE m SET d = 1.5 WHERE a = 2');
SELECT alike('DELETE FROM m WHERE a = 1');
SELECT alike('UPDATE m SET d = 1.5 WHERE a = 2');
SELECT rows FROM mot.check('m');
-- the value goes back with a savepoint
TRUNCATE m, h;
SELECT alike('INSERT INTO m (a) VALUES (1)');
BEGIN;
SAVEPOINT s;
ALTER TABLE m ADD COLUMN f int DEFAULT 5;
CREATE UNIQUE INDEX ON m (f);
INSERT INTO m (a, d) VALUES (2, 2);
ROLLBACK TO s;
ALTER TABLE m ADD COLUMN f text DEFAULT 'five';
CREATE UNIQUE INDEX m_f ON m (f);
SELECT a, f FROM m WHERE f = 'five';
COMMIT;
INSERT INTO m (a, d) VALUES (2, 2);
-- one statement adds column, default and key
SELECT alike('ALTER TABLE m ADD COLUMN g int DEFAULT 3, ADD COLUMN i date DEFAULT ''2020-01-01'', ADD UNIQUE (g, i)');
SELECT alike('SELECT a FROM m WHERE g = 3 AND i = ''2020-01-01''');

-- every type of a key
CREATE TABLE mk (id int PRIMARY KEY) USING mot;
INSERT INTO mk SELECT generate_series(1, 3);
CREATE TABLE kinds (n int, type text, value text);
INSERT INTO kinds SELECT row_number() OVER (), split_part(v, '=', 1), split_part(v, '=', 2) FROM unnest(ARRAY[
  'boolean=true', 'smallint=-2', 'int=3', 'bigint=-4', 'oid=5', 'real=-0', 'float8=NaN', 'date=infinity', 'time=01:02', 'timestamp=-infinity', 'timestamptz=2020-01-01 00:00+00',
  'timetz=01:02+03', 'interval=1 mon', 'uuid=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'numeric=-123.4500', 'numeric=NaN', 'text=', 'text=abc', 'varchar(5)=abcde', 'char(5)=ab', 'char=x', 'bytea=\x00ff00', '"char"=y', 'name=n',
  'money=7', 'pg_lsn=0/7', 'xid8=8', 'macaddr=08:00:2b:01:02:03', 'macaddr8=08:00:2b:01:02:03:04:05', 'inet=10.0.0.1/8', 'cidr=10.0.0.0/8', 'bit(3)=101', 'varbit=0110', 'regclass=pg_class']) v;
DO $$ DECLARE k record; BEGIN
  FOR k IN SELECT * FROM kinds ORDER BY n LOOP
    EXECUTE format('ALTER TABLE mk ADD COLUMN k%s %s DEFAULT %L', k.n, k.type, k.value);
  END LOOP;
END $$;
INSERT INTO mk VALUES (4);
UPDATE mk SET id = id WHERE id = 2;
DO $$ DECLARE k record; found text; BEGIN
  FOR k IN SELECT * FROM kinds ORDER BY n LOOP
    EXECUTE format('CREATE INDEX ON mk (k%1$s); CREATE INDEX ON mk (id, k%1$s DESC)', k.n);
    EXECUTE format('SELECT string_agg(id::text, '','' ORDER BY id) FROM mk WHERE k%s = %L::%s', k.n, k.value, k.type) INTO found;
    IF found IS DISTINCT FROM '1,2,3,4' THEN RAISE 'column % of type %: %', k.n, k.type, found; END IF;
    EXECUTE format('SELECT string_agg(id::text, '','') FROM mk WHERE id = 3 AND k%s = %L::%s', k.n, k.value, k.type) INTO found;
    IF found IS DISTINCT FROM '3' THEN RAISE 'column % of type %, behind another: %', k.n, k.type, found; END IF;
    BEGIN
      EXECUTE format('CREATE UNIQUE INDEX ON mk (k%s)', k.n);
      RAISE 'column % of type %: unique', k.n, k.type;
    EXCEPTION WHEN unique_violation THEN
      NULL;
    END;
    EXECUTE format('DROP INDEX mk_k%1$s_idx, mk_id_k%1$s_idx', k.n);
    COMMIT;
  END LOOP;
END $$;
SELECT rows FROM mot.check('mk');
-- a collation whose keys are not the texts alone
ALTER TABLE mk ADD COLUMN t text COLLATE "en-x-icu" DEFAULT 'ae';
CREATE INDEX ON mk (t);
SELECT count(*) FROM mk WHERE t = 'ae';
-- a domain
CREATE DOMAIN small AS int DEFAULT 9;
ALTER TABLE mk ADD COLUMN s small;
CREATE INDEX ON mk (s, s);
SELECT count(*) FROM mk WHERE s = 9;
DROP TABLE mk;

-- long values: as long as a key may be, and longer; blanks are no part of a key
CREATE TABLE ml (a int) USING mot;
INSERT INTO ml VALUES (1);
DO $$ BEGIN
  EXECUTE format('ALTER TABLE ml ADD COLUMN b text DEFAULT %L, ADD COLUMN c text DEFAULT %L, ADD COLUMN d char(16000) DEFAULT ''blank''', repeat('y', 15358), repeat('z', 15359));
END $$;
CREATE INDEX ml_b ON ml (b);
SELECT a FROM ml WHERE b = repeat('y', 15358);
CREATE INDEX ml_c ON ml (c);
CREATE INDEX ml_b_d ON ml (b, d);
CREATE UNIQUE INDEX ml_d ON ml (d);
SELECT a FROM ml WHERE d = 'blank';
SELECT outcome('INSERT INTO ml (a, d) VALUES (2, ''blank  '')');
-- the value goes where the rows are written anew, and a shorter one can be a key
UPDATE ml SET c = 'short';
ALTER TABLE ml SET ACCESS METHOD heap;
ALTER TABLE ml SET ACCESS METHOD mot;
CREATE INDEX ml_c ON ml (c);
SELECT a FROM ml WHERE c = 'short';
DROP TABLE ml;

-- types change without a rewrite and with one; columns go; indexes are made anew
CREATE TABLE mt (a int PRIMARY KEY, gone text) USING mot;
CREATE TABLE ht (a int PRIMARY KEY, gone text);
SELECT alike('INSERT INTO mt SELECT g, repeat(''g'', g) FROM generate_series(1, 4) g');
SELECT alike('ALTER TABLE mt ADD COLUMN b varchar(5) DEFAULT ''bbb'', ADD COLUMN c int DEFAULT 7, ADD COLUMN d int DEFAULT 8');
SELECT alike('CREATE INDEX mt_b ON mt (b, c)');
SELECT alike('ALTER TABLE mt ALTER b TYPE varchar(10)');
SELECT alike('SELECT a FROM mt WHERE b = ''bbb'' AND c = 7');
SELECT alike('ALTER TABLE mt ALTER b TYPE text');
SELECT alike('SELECT a FROM mt WHERE b = ''bbb'' AND c = 7');
SELECT alike('ALTER TABLE mt ALTER c TYPE oid');
SELECT alike('SELECT a FROM mt WHERE b = ''bbb'' AND c = 7');
SELECT alike('ALTER TABLE mt DROP COLUMN gone, DROP COLUMN d');
SELECT alike('INSERT INTO mt VALUES (5)');
SELECT alike('SELECT a FROM mt WHERE b = ''bbb'' AND c = 7');
SELECT alike('REINDEX INDEX mt_b');
SELECT alike('REINDEX TABLE mt');
SELECT alike('SELECT * FROM mt WHERE b = ''bbb'' AND c = 7');
SELECT alike('ALTER TABLE mt ALTER b SET DEFAULT ''other''');
SELECT alike('INSERT INTO mt VALUES (6)');
SELECT alike('ALTER TABLE mt ALTER b DROP DEFAULT, ALTER c SET NOT NULL');
SELECT alike('SELECT * FROM mt WHERE b = ''bbb'' AND c = 7');
SELECT rows FROM mot.check('mt');
SELECT alike('ALTER TABLE mt ADD COLUMN e int DEFAULT 9, ALTER c TYPE numeric USING c::int + 0.5, ADD CONSTRAINT mt_e UNIQUE (e, a)');
SELECT alike('SELECT * FROM mt WHERE b = ''bbb'' AND c = 7.5');
SELECT alike('SELECT a FROM mt WHERE e = 9');
SELECT rows FROM mot.check('mt');
SELECT alike('ALTER TABLE mt ADD COLUMN f int DEFAULT 1');
SELECT alike('CREATE INDEX mt_f ON mt (f)');
ALTER TABLE mt SET ACCESS METHOD heap;
ALTER TABLE mt SET ACCESS METHOD mot;
SELECT alike('SELECT a FROM mt WHERE f = 1');
SELECT rows FROM mot.check('mt');
DROP TABLE mt, ht;

-- foreign keys to such a column, and from it
CREATE TABLE mp (a int) USING mot;
CREATE TABLE hp (a int);
SELECT alike('INSERT INTO mp VALUES (1)');
SELECT alike('ALTER TABLE mp ADD COLUMN k int NOT NULL DEFAULT 5, ADD PRIMARY KEY (k)');
CREATE TABLE mc (a int PRIMARY KEY) USING mot;
CREATE TABLE hc (a int PRIMARY KEY);
SELECT alike('INSERT INTO mc VALUES (1), (2)');
SELECT alike('ALTER TABLE mc ADD COLUMN p int DEFAULT 5');
SELECT alike('CREATE INDEX mc_p ON mc (p)');
SELECT alike('ALTER TABLE mc ADD CONSTRAINT mc_p FOREIGN KEY (p) REFERENCES mp ON UPDATE CASCADE ON DELETE CASCADE');
SELECT alike('INSERT INTO mc VALUES (3, 6)');
SELECT alike('INSERT INTO mc VALUES (3)');
SELECT alike('UPDATE mp SET k = 6');
SELECT alike('SELECT * FROM mc WHERE p = 6');
SELECT alike('DELETE FROM mp');
SELECT alike('SELECT * FROM mc');
DROP TABLE mc, hc, mp, hp;

-- partitions and children have values of their own
CREATE TABLE mq (a int, b int) PARTITION BY LIST (a);
CREATE TABLE hq (a int, b int) PARTITION BY LIST (a);
CREATE TABLE mq1 PARTITION OF mq FOR VALUES IN (1) USING mot;
CREATE TABLE hq1 PARTITION OF hq FOR VALUES IN (1);
CREATE TABLE mq2 (b int, a int) USING mot;
CREATE TABLE hq2 (b int, a int);
SELECT alike('INSERT INTO mq VALUES (1, 1)');
SELECT alike('INSERT INTO mq2 VALUES (2, 2)');
SELECT alike('ALTER TABLE mq2 ADD COLUMN c int DEFAULT 20');
SELECT alike('ALTER TABLE mq ADD COLUMN c int DEFAULT 10');
SELECT alike('CREATE INDEX mq_c ON mq (c, b)');
SELECT alike('ALTER TABLE mq ATTACH PARTITION mq2 FOR VALUES IN (2)');
SELECT alike('SELECT a, b, c FROM mq WHERE c = 10');
SELECT alike('SELECT a, b, c FROM mq WHERE c = 20');
SELECT alike('UPDATE mq SET a = 3 - a RETURNING a, b, c');
SELECT alike('SELECT a, b, c FROM mq WHERE c >= 10');
SELECT alike('ALTER TABLE mq ADD COLUMN d int DEFAULT 30, ADD UNIQUE (a, d)');
SELECT alike('INSERT INTO mq VALUES (1, 1, 1)');
SELECT alike('SELECT a, b, c FROM mq WHERE a = 1 AND d = 30');
CREATE TABLE mi1 () INHERITS (m) USING mot;
CREATE TABLE hi1 () INHERITS (h);
SELECT alike('INSERT INTO mi1 (a, d) VALUES (10, 10)');
SELECT alike('ALTER TABLE m ADD COLUMN j int DEFAULT 40');
SELECT alike('CREATE INDEX mi1_j ON mi1 (j)');
SELECT alike('SELECT a FROM mi1 WHERE j = 40');

-- what core reads beside keys: statistics, whole rows, triggers, cursors, locks, a copy
CREATE TABLE ms (a int PRIMARY KEY) USING mot;
CREATE TABLE hs (a int PRIMARY KEY);
SELECT alike('INSERT INTO ms SELECT generate_series(1, 100)');
SELECT alike('ALTER TABLE ms ADD COLUMN b int DEFAULT 7, ADD COLUMN c text DEFAULT ''ccc''');
SELECT alike('CREATE INDEX ms_b ON ms (b)');
SELECT alike('ANALYZE ms');
SELECT attname, null_frac, avg_width, n_distinct, most_common_vals FROM pg_stats WHERE schemaname = 'am_missing' AND tablename = 'ms' ORDER BY 1;
SELECT alike('SELECT ms FROM ms WHERE a = 5');
SELECT alike('SELECT to_jsonb(ms) FROM ms WHERE a = 5 FOR UPDATE');
CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE INFO 'old %, new %', OLD, NEW; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE UPDATE ON ms FOR EACH ROW EXECUTE FUNCTION told();
CREATE CONSTRAINT TRIGGER u AFTER UPDATE ON ms DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION told();
UPDATE ms SET a = 1000 WHERE a = 5 AND b = 7;
COPY (SELECT * FROM ms WHERE b = 7 ORDER BY a LIMIT 2) TO STDOUT;
SELECT count(*) FROM ms x JOIN ms y USING (b, c) WHERE x.a < 3;
SELECT rows FROM mot.check('ms');

DROP SCHEMA am_missing CASCADE;
