-- An UPDATE of columns that have a fixed place writes their values over a copy of the row's bytes, and asks no index whose columns it leaves
-- alone. What comes out is what the general path makes; debug builds compare every row. Look-ups of one whole key have a way of their own.
SET mot.compiled_statements = always;
SET plan_cache_mode = force_generic_plan;
CREATE FOREIGN TABLE cip (
    id int PRIMARY KEY, b boolean, s smallint, i int NOT NULL, l bigint, f real, d double precision, day date,
    c "char", t text, behind int, u uuid) SERVER mot;
CREATE UNIQUE INDEX cip_l ON cip (l);
INSERT INTO cip SELECT n, true, n, n, n * 10, n / 4.0, n / 8.0, date '2020-01-01' + n, 'x', repeat('t', n * 40), n,
    '00000000-0000-0000-0000-000000000001' FROM generate_series(1, 4) n;
INSERT INTO cip (id, i) VALUES (5, 5);

-- All widths, whatever was there; rows with NULL, columns behind a text, and values passed by reference are formed.
PREPARE widths(int, boolean, smallint, int, real, double precision, date, "char") AS
    UPDATE cip SET b = $2, s = $3, i = $4, f = $5, d = $6, day = $7, c = $8 WHERE id = $1 RETURNING *;
EXECUTE widths(1, false, -2, -3, -4.5, -5.25, '1999-12-31', 'y');
EXECUTE widths(1, true, 32767, 2147483647, 'NaN', 'Infinity', 'infinity', 'z');
EXECUTE widths(1, NULL, NULL, 1, NULL, NULL, NULL, NULL);
EXECUTE widths(1, true, 1, 1, 1, 1, '2020-01-01', 'a');
EXECUTE widths(5, true, 1, 1, 1, 1, '2020-01-01', 'a');
EXECUTE widths(2, true, 2, NULL, 2, 2, '2020-01-02', 'b');
EXECUTE widths(2, true, 32768, 2, 2, 2, '2020-01-02', 'b');
PREPARE behind(int, int) AS UPDATE cip SET behind = behind + $2, i = i + 1 WHERE id = $1 RETURNING id, i, behind, t IS NULL AS no_text;
EXECUTE behind(3, 7);
EXECUTE behind(5, 7);
PREPARE identified(int, uuid) AS UPDATE cip SET u = $2 WHERE id = $1 RETURNING id, u;
EXECUTE identified(3, '00000000-0000-0000-0000-000000000003');
PREPARE texts(int, text) AS UPDATE cip SET t = $2 WHERE id = $1 RETURNING id, length(t), behind;
EXECUTE texts(4, repeat('long', 1000));
EXECUTE texts(4, NULL);
EXECUTE texts(4, 'short');

-- What is assigned is evaluated once.
CREATE SEQUENCE cip_counted;
PREPARE counted(int) AS UPDATE cip SET s = nextval('cip_counted')::smallint WHERE id = $1 RETURNING id, s;
EXECUTE counted(1);
EXECUTE counted(5);
EXECUTE counted(1);

-- Swapped columns, errors in the middle, savepoints.
PREPARE swap(int) AS UPDATE cip SET i = s, s = i WHERE id = $1 RETURNING i, s;
EXECUTE swap(3);
PREPARE part(int, int) AS UPDATE cip SET i = i / $2 WHERE id = $1 RETURNING i;
EXECUTE part(3, 0);
EXECUTE part(3, 2);
BEGIN;
EXECUTE part(3, 1);
SAVEPOINT before;
UPDATE cip SET i = 1000 WHERE id = 3;
UPDATE cip SET i = i + 1 WHERE id = 3;
SELECT i FROM cip WHERE id = 3;
ROLLBACK TO before;
SELECT i FROM cip WHERE id = 3;
UPDATE cip SET i = i + 1 WHERE id = 3;
COMMIT;
SELECT i FROM cip WHERE id = 3;
DO $$
BEGIN
    FOR n IN 1..50 LOOP
        UPDATE cip SET i = i + 1, d = n WHERE id = 3;
    END LOOP;
END $$;
SELECT i, d FROM cip WHERE id = 3;
SELECT rows FROM mot.check('cip');

-- The index of an assigned column is asked, also one that is made between two executions.
PREPARE key_of(int, bigint) AS UPDATE cip SET l = $2 WHERE id = $1 RETURNING id, l;
EXECUTE key_of(1, 20);
EXECUTE key_of(1, 11);
SELECT id FROM cip WHERE l = 11;
SELECT id FROM cip WHERE l = 10;
PREPARE number(int, int) AS UPDATE cip SET i = $2 WHERE id = $1 RETURNING id, i;
EXECUTE number(1, 77);
EXECUTE number(2, 78);
CREATE UNIQUE INDEX cip_i ON cip (i);
EXECUTE number(1, 78);
EXECUTE number(1, 79);
SELECT id FROM cip WHERE i = 79;
SELECT id FROM cip WHERE i = 77;
BEGIN;
DROP INDEX cip_i;
EXECUTE number(1, 78);
ROLLBACK;
EXECUTE number(1, 78);
DROP INDEX cip_i;
EXECUTE number(1, 78);
BEGIN;
CREATE INDEX cip_i ON cip (i);
EXECUTE number(1, 80);
SELECT id FROM cip WHERE i = 80;
ROLLBACK;
EXECUTE number(1, 81);
SELECT rows FROM mot.check('cip');

-- Columns that come and go, conditions, NOT NULL, truncation.
ALTER FOREIGN TABLE cip ADD COLUMN last int;
EXECUTE number(1, 82);
PREPARE last(int, int) AS UPDATE cip SET last = $2, i = i + 1 WHERE id = $1 RETURNING id, i, last, behind;
EXECUTE last(1, 5);
EXECUTE last(1, 6);
ALTER FOREIGN TABLE cip DROP COLUMN s;
EXECUTE number(1, 83);
EXECUTE last(2, 7);
INSERT INTO cip VALUES (6, true, 6, 60, 6, 6, '2020-01-06', 'f', 'six', 6, NULL, 6);
EXECUTE number(6, 84);
EXECUTE last(6, 8);
ALTER FOREIGN TABLE cip ADD CONSTRAINT small CHECK (i < 1000);
EXECUTE number(1, 999);
EXECUTE number(1, 1000);
ALTER FOREIGN TABLE cip DROP CONSTRAINT small;
EXECUTE number(1, 1000);
BEGIN;
TRUNCATE cip;
EXECUTE number(1, 1);
ROLLBACK;
EXECUTE number(1, 1);
SELECT id, b, i, l, f, d, day, c, left(t, 3) AS t, behind, last FROM cip ORDER BY id;
SELECT rows FROM mot.check('cip');

-- One whole key: composites, widths, NULL, keys longer than any, keys that moved, that came back.
CREATE FOREIGN TABLE cip_point (a int, b text COLLATE "C", n int, PRIMARY KEY (a, b)) SERVER mot;
INSERT INTO cip_point SELECT a, b, a * 10 + length(b) FROM generate_series(1, 3) a, unnest(array['', 'x', 'xx']) b;
PREPARE point(bigint, text) AS SELECT n FROM cip_point WHERE a = $1 AND b = $2;
EXECUTE point(1, 'x');
EXECUTE point(1, '');
EXECUTE point(1, 'y');
EXECUTE point(NULL, 'x');
EXECUTE point(1, NULL);
EXECUTE point(5000000000, 'x');
EXECUTE point(-5000000000, 'x');
EXECUTE point(1, repeat('x', 10000));
UPDATE cip_point SET b = 'moved' WHERE a = 1 AND b = 'x';
EXECUTE point(1, 'x');
EXECUTE point(1, 'moved');
INSERT INTO cip_point VALUES (1, 'x', 99);
EXECUTE point(1, 'x');
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXECUTE point(1, 'x');
DELETE FROM cip_point WHERE a = 1 AND b = 'x';
EXECUTE point(1, 'x');
INSERT INTO cip_point VALUES (1, 'x', 100);
EXECUTE point(1, 'x');
UPDATE cip_point SET n = n + 1 WHERE a = 1 AND b = 'x';
EXECUTE point(1, 'x');
ROLLBACK;
EXECUTE point(1, 'x');
BEGIN;
DECLARE seen CURSOR FOR SELECT a, b, n FROM cip_point WHERE a = 2 AND b = 'x' FOR UPDATE;
FETCH seen;
UPDATE cip_point SET n = n + 1 WHERE CURRENT OF seen;
FETCH seen;
CLOSE seen;
DECLARE again SCROLL CURSOR FOR SELECT n FROM cip_point WHERE a = 2 AND b = 'x';
FETCH again;
FETCH again;
FETCH BACKWARD again;
FETCH FIRST again;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
EXECUTE point(2, 'x');
UPDATE cip_point SET n = 5 WHERE a = 2 AND b = 'x';
EXECUTE point(2, 'x');
COMMIT;
SELECT o.a, i.n FROM generate_series(1, 4) o(a) LEFT JOIN cip_point i ON i.a = o.a AND i.b = 'xx' ORDER BY 1;
DEALLOCATE ALL;
DROP FOREIGN TABLE cip, cip_point;
DROP SEQUENCE cip_counted;
RESET plan_cache_mode;
RESET mot.compiled_statements;

-- A column's STORAGE says how long a text's header is: the row keeps the old one.
CREATE FOREIGN TABLE cip_storage (id int PRIMARY KEY, i int, t text) SERVER mot;
INSERT INTO cip_storage VALUES (1, 1, 'a');
ALTER FOREIGN TABLE cip_storage ALTER COLUMN t SET STORAGE PLAIN;
UPDATE cip_storage SET t = 'text';
ALTER FOREIGN TABLE cip_storage ALTER COLUMN t SET STORAGE EXTENDED;
SET mot.compiled_statements = always;
UPDATE cip_storage SET i = 2 WHERE id = 1 RETURNING *;
RESET mot.compiled_statements;
DROP FOREIGN TABLE cip_storage;
