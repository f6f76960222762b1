-- Statements that are executed again after a very long list: what they keep is as good for the next list, short or long, read to its end or not.
CREATE FOREIGN TABLE listed (a int, b int, note text, PRIMARY KEY (a, b)) SERVER mot;
CREATE FOREIGN TABLE single (a int PRIMARY KEY, note text) SERVER mot;
INSERT INTO listed SELECT g, g % 10, 'n' || g FROM generate_series(1, 3000) g;
INSERT INTO single SELECT g, 'n' || g FROM generate_series(1, 3000) g;
SET plan_cache_mode = force_generic_plan;
PREPARE one(int[]) AS SELECT a, note FROM single WHERE a = ANY ($1) ORDER BY a LIMIT 3;
PREPARE all_of(int[]) AS SELECT count(*), sum(a) FROM single WHERE a = ANY ($1);
PREPARE in_both(int[], int[]) AS SELECT count(*), sum(a) FROM listed WHERE a = ANY ($1) AND b = ANY ($2);
PREPARE change(int[]) AS UPDATE single SET note = note || '+' WHERE a = ANY ($1);
SELECT array_agg(g)::text AS long, array_agg(g) FILTER (WHERE g <= 100)::text AS hundred FROM generate_series(1, 20000) g \gset
EXECUTE one('{5,1,2999,7}');
EXECUTE one(:'long');
EXECUTE one('{5,1,2999,7}');
EXECUTE one(NULL);
EXECUTE one(:'long');
EXECUTE all_of('{5,1,2999,7}');
EXECUTE all_of(:'long');
EXECUTE all_of('{}');
EXECUTE all_of(:'long');
EXECUTE all_of('{5,1,2999,7}');
EXECUTE in_both('{5,1,2999,7}', '{1,5,9}');
EXECUTE in_both(:'long', '{1,5,9}');
EXECUTE in_both(:'hundred', :'hundred');
EXECUTE in_both('{5,1,2999,7}', '{1,5,9}');
EXECUTE change('{1}');
EXECUTE change(:'long');
EXECUTE change('{1}');
EXECUTE one('{2,1}');
-- A cursor that is left in the middle.
BEGIN;
DECLARE part CURSOR FOR SELECT a FROM single WHERE a = ANY (:'long') ORDER BY a;
FETCH 2 FROM part;
TRUNCATE listed;
CLOSE part;
COMMIT;
EXECUTE in_both(:'long', '{1,5,9}');
EXECUTE one('{3,4}');
-- A very long text is no more kept than a very long list.
PREPARE long_text(text) AS SELECT a FROM single WHERE note = $1;
INSERT INTO single VALUES (9999, 'here');
EXECUTE long_text('here');
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmRSS:\s*(\d+) kB') AS kb_before \gset
EXECUTE long_text(repeat('x', 200000000));
SELECT substring(pg_read_file('/proc/self/status') FROM 'VmRSS:\s*(\d+) kB')::int - :kb_before < 100000 AS is_given_back;
EXECUTE long_text('here');
DROP FOREIGN TABLE listed, single;
