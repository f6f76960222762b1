-- A SQL function that gives its rows one by one goes on after the savepoint it was called under is gone, as its cursor is older. What it saw of that
-- savepoint's changes is gone, too: its memory may be another row's by then.
CREATE FOREIGN TABLE os (id int NOT NULL, v text) SERVER mot;
ALTER TABLE os ADD PRIMARY KEY (id);
CREATE FOREIGN TABLE os_other (id int, w text) SERVER mot;
INSERT INTO os SELECT g, 'old' || lpad(g::text, 5, '0') FROM generate_series(1, 300) g;
INSERT INTO os_other SELECT g, 'uuu' || lpad(g::text, 5, '0') FROM generate_series(1, 3000) g;
CREATE FUNCTION os_rows(int) RETURNS SETOF text LANGUAGE sql VOLATILE AS 'SELECT v FROM os';
CREATE FUNCTION os_by_key(int) RETURNS SETOF text LANGUAGE sql VOLATILE AS 'SELECT v FROM os WHERE id > 0 ORDER BY id';
CREATE FUNCTION os_joined(int) RETURNS SETOF text LANGUAGE sql VOLATILE AS
    'SELECT os.v || h.x FROM os, (VALUES (''a''), (''b''), (''c'')) h (x) WHERE os.id > 0 ORDER BY os.id';

-- The first calls are made before the savepoint, so that core keeps the function's state on all versions.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_sort = off;

BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT os_rows(g) FROM generate_series(1, 3) g;
MOVE 300 FROM c;
SAVEPOINT s;
UPDATE os SET v = 'new' || lpad(id::text, 5, '0');
FETCH 1 FROM c;
ROLLBACK TO s;
UPDATE os_other SET w = 'UUU' || lpad(id::text, 5, '0');
FETCH 7 FROM c;
ROLLBACK;

BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT os_by_key(g) FROM generate_series(1, 3) g;
MOVE 300 FROM c;
SAVEPOINT s;
UPDATE os SET v = 'new' || lpad(id::text, 5, '0');
FETCH 20 FROM c;
ROLLBACK TO s;
UPDATE os_other SET w = 'UUU' || lpad(id::text, 5, '0');
FETCH 7 FROM c;
ROLLBACK;

-- The row of the outer side is kept while the inner side is asked for more.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT os_joined(g) FROM generate_series(1, 3) g;
MOVE 900 FROM c;
SAVEPOINT s;
UPDATE os SET v = 'new' || lpad(id::text, 5, '0');
FETCH 1 FROM c;
ROLLBACK TO s;
UPDATE os_other SET w = 'UUU' || lpad(id::text, 5, '0');
FETCH 4 FROM c;
ROLLBACK;

-- A savepoint that is released is no end of anything.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT os_rows(g) FROM generate_series(1, 3) g;
MOVE 300 FROM c;
SAVEPOINT s;
UPDATE os SET v = 'new' || lpad(id::text, 5, '0');
FETCH 1 FROM c;
RELEASE s;
FETCH 2 FROM c;
ROLLBACK;

-- The storage itself is gone. PostgreSQL 18 goes on with the function, and so the scan says it; those before begin it anew, as its state is of the savepoint.
CREATE FUNCTION os_others(int) RETURNS SETOF text LANGUAGE sql VOLATILE AS 'SELECT w FROM os_other';
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT os_others(g) FROM generate_series(1, 3) g;
SAVEPOINT s;
TRUNCATE os_other;
INSERT INTO os_other SELECT g, 'made' FROM generate_series(1, 10) g;
FETCH 1 FROM c;
ROLLBACK TO s;
FETCH 2 FROM c;
ROLLBACK;
SELECT count(*) FROM os_other;

DROP FUNCTION os_others, os_rows, os_by_key, os_joined;
DROP TABLE os, os_other;
