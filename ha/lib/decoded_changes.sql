-- Changes of every kind, for a database of either access method: 063_logical_decoding.pl compares
-- what is decoded of them.
CREATE TABLE t (id int PRIMARY KEY, a text, b numeric, c int[]);
INSERT INTO t VALUES (1,'one',1.5,'{1,2}'),(2,NULL,NULL,NULL);
UPDATE t SET a='x' WHERE id=1;
UPDATE t SET id=3 WHERE id=2;
DELETE FROM t WHERE id=3;
PREPARE ins AS INSERT INTO t VALUES ($1,$2);
EXECUTE ins(10,'p'); EXECUTE ins(11,'q');
PREPARE upd AS UPDATE t SET a=$2 WHERE id=$1;
EXECUTE upd(10,'pp');
PREPARE del AS DELETE FROM t WHERE id=$1;
EXECUTE del(11);
BEGIN; SAVEPOINT s; INSERT INTO t VALUES (20,'lost'); ROLLBACK TO s; INSERT INTO t VALUES (20,'kept'); UPDATE t SET a='k2' WHERE id=20; COMMIT;
BEGIN; INSERT INTO t VALUES (30,'no'); ROLLBACK;
INSERT INTO t VALUES (20,'up') ON CONFLICT (id) DO UPDATE SET a=EXCLUDED.a||'!';
INSERT INTO t VALUES (21,'new') ON CONFLICT (id) DO UPDATE SET a=EXCLUDED.a||'!';
INSERT INTO t VALUES (21,'new') ON CONFLICT DO NOTHING;
COPY t (id, a) FROM STDIN;
40	forty
41	\N
\.
TRUNCATE t;
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t SELECT g,'g'||g FROM generate_series(1,5) g;
UPDATE t SET a='full' WHERE id=2;
DELETE FROM t WHERE id=3;
ALTER TABLE t REPLICA IDENTITY NOTHING;
UPDATE t SET id=50 WHERE id=4; DELETE FROM t WHERE id=5;
CREATE UNIQUE INDEX tu ON t (a); ALTER TABLE t ALTER a SET NOT NULL;
ALTER TABLE t REPLICA IDENTITY USING INDEX tu;
UPDATE t SET b=1; UPDATE t SET a=a||'2';
DELETE FROM t;
BEGIN;
INSERT INTO t VALUES (1,'a');
ALTER TABLE t ADD d int DEFAULT 7;
INSERT INTO t VALUES (2,'b');
ALTER TABLE t ALTER b TYPE text;
INSERT INTO t VALUES (3,'c','txt');
UPDATE t SET d=d+1;
COMMIT;
CREATE TABLE p (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
INSERT INTO p VALUES (1,'a'),(11,'b');
UPDATE p SET id=12 WHERE id=1;
UPDATE p SET v='z';
CREATE TABLE ctas AS SELECT * FROM p;
CREATE MATERIALIZED VIEW mv AS SELECT * FROM p;
REFRESH MATERIALIZED VIEW mv;
VACUUM FULL t; CLUSTER t USING tu;
CREATE UNLOGGED TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1);
ALTER TABLE u SET LOGGED; INSERT INTO u VALUES (2); UPDATE u SET id=3 WHERE id=1;
CREATE TEMP TABLE tmp (id int PRIMARY KEY); INSERT INTO tmp VALUES (1);
CREATE TABLE fk (id int PRIMARY KEY, r int REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO fk VALUES (1,12),(2,11);
UPDATE p SET id=13 WHERE id=12; DELETE FROM p WHERE id=11;
CREATE FUNCTION loop() RETURNS void LANGUAGE plpgsql AS $$BEGIN FOR i IN 100..103 LOOP INSERT INTO fk VALUES (i,13); UPDATE fk SET r=NULL WHERE id=i; BEGIN DELETE FROM fk WHERE id=i; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END$$;
SELECT loop();
CREATE INDEX fke ON fk ((id+1)); INSERT INTO fk VALUES (200), (201); UPDATE fk SET id=202 WHERE id=201;
BEGIN; INSERT INTO fk VALUES (300); PREPARE TRANSACTION 'ld'; 
COMMIT PREPARED 'ld';
INSERT INTO t VALUES (77, repeat('long', 500), 'x');
UPDATE t SET d=1 WHERE id=77;
DELETE FROM t WHERE id=77;
BEGIN; INSERT INTO t VALUES (500,'w'); TRUNCATE t; INSERT INTO t VALUES (501,'w'); COMMIT;
WITH d AS (DELETE FROM t RETURNING *) INSERT INTO t SELECT id+1000,a FROM d;
-- keys that are swapped, and checked at the end
CREATE TABLE swapped (id int UNIQUE DEFERRABLE INITIALLY DEFERRED, n int);
ALTER TABLE swapped REPLICA IDENTITY FULL;
INSERT INTO swapped VALUES (1, 1), (2, 2);
UPDATE swapped SET id = 3 - id;
-- triggers that change the row, another one, and none
CREATE FUNCTION trigger_of_s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n = 0 THEN RETURN NULL; END IF;
  NEW.n := NEW.n + 100;
  DELETE FROM swapped WHERE n = 2;
  RETURN NEW;
END $$;
CREATE TRIGGER s BEFORE UPDATE ON swapped FOR EACH ROW EXECUTE FUNCTION trigger_of_s();
UPDATE swapped SET n = 5 WHERE n = 1;
UPDATE swapped SET n = 0 WHERE n = 105;
-- rows that give way to others, beside keys that functions compute
CREATE TABLE upserted (id int PRIMARY KEY, a text, n int DEFAULT 0);
CREATE UNIQUE INDEX ON upserted (lower(a));
INSERT INTO upserted VALUES (1, 'A'), (2, 'B');
INSERT INTO upserted VALUES (3, 'a'), (4, 'C'), (1, 'D') ON CONFLICT DO NOTHING;
INSERT INTO upserted VALUES (5, 'b'), (6, 'E') ON CONFLICT (lower(a)) DO UPDATE SET n = upserted.n + 1;
INSERT INTO upserted VALUES (7, 'a') ON CONFLICT (lower(a)) DO UPDATE SET id = EXCLUDED.id WHERE upserted.n = 0;
MERGE INTO upserted u USING (VALUES (7, 'merged'), (8, 'new'), (2, NULL)) s (id, a) ON u.id = s.id
  WHEN MATCHED AND s.a IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a);
INSERT INTO upserted VALUES (9, 'MERGED');
-- keys that only functions compare
CREATE TYPE size AS (n int, unit text);
CREATE TABLE sized (s size PRIMARY KEY, note text);
INSERT INTO sized VALUES (row(1, 'm'), 'one'), (row(2, 'm'), NULL);
UPDATE sized SET s = row(3, 'm') WHERE note IS NULL;
DELETE FROM sized WHERE s = row(1, 'm')::size;
-- definitions between changes, and savepoints in savepoints
BEGIN;
CREATE TABLE short (a int PRIMARY KEY);
INSERT INTO short VALUES (1);
SAVEPOINT one;
ALTER TABLE short ADD b text;
INSERT INTO short VALUES (2, 'b');
SAVEPOINT two;
ALTER TABLE short ALTER a TYPE bigint;
UPDATE short SET a = a + 10;
ROLLBACK TO two;
UPDATE short SET b = 'c' WHERE a = 1;
RELEASE one;
CREATE INDEX ON short (b);
REINDEX TABLE short;
DELETE FROM short WHERE a = 2;
COMMIT;
DROP TABLE short;
-- of somewhere else
SELECT pg_replication_origin_create('elsewhere_' || current_setting('default_table_access_method')) IS NOT NULL;
SELECT pg_replication_origin_session_setup('elsewhere_' || current_setting('default_table_access_method'));
INSERT INTO sized VALUES (row(9, 'm'), 'of somewhere else');
SELECT pg_replication_origin_session_reset();
-- nothing of these
SELECT * FROM sized FOR UPDATE;
VACUUM FULL sized;
REINDEX TABLE sized;
CREATE INDEX CONCURRENTLY ON sized (note);
