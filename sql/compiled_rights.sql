-- Rights are core's answer, kept by compiled statements and kept plan states as long as nothing it rests on changes. The same under
-- mot.compiled_statements = off.
SET plan_cache_mode = force_generic_plan;
CREATE FOREIGN TABLE cr (id int PRIMARY KEY, n int, secret text) SERVER mot;
INSERT INTO cr VALUES (1, 10, 'a'), (2, 20, 'b');
CREATE ROLE cr_user;
CREATE ROLE cr_group;
PREPARE get(int) AS SELECT id, n FROM cr WHERE id = $1;
PREPARE tell(int) AS SELECT secret FROM cr WHERE id = $1;
PREPARE add(int) AS UPDATE cr SET n = n + 1 WHERE id = $1;
PREPARE put(int) AS INSERT INTO cr VALUES ($1, 0, '');
PREPARE del(int) AS DELETE FROM cr WHERE id = $1;
PREPARE pair(int) AS SELECT count(*), sum(b.n) FROM cr a JOIN cr b ON b.id = a.id WHERE a.id = $1;
-- Every form is made, and run, as superuser first.
EXECUTE get(1);
EXECUTE get(1);
EXECUTE tell(1);
EXECUTE tell(1);
EXECUTE add(1);
EXECUTE add(1);
EXECUTE put(3);
EXECUTE put(4);
EXECUTE del(3);
EXECUTE del(4);
EXECUTE pair(1);
EXECUTE pair(1);
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE tell(1);
EXECUTE add(1);
EXECUTE put(5);
EXECUTE del(1);
EXECUTE pair(1);
RESET ROLE;

-- By the table, by the column, by a role, by a role of a role.
GRANT SELECT (id, n), UPDATE (n) ON cr TO cr_user;
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE tell(1);
EXECUTE add(1);
EXECUTE pair(1);
RESET ROLE;
REVOKE SELECT (n) ON cr FROM cr_user;
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE add(1);
EXECUTE pair(1);
RESET ROLE;
GRANT SELECT, INSERT, DELETE ON cr TO cr_group;
GRANT cr_group TO cr_user;
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE tell(1);
EXECUTE add(1);
EXECUTE put(5);
EXECUTE del(5);
EXECUTE pair(1);
RESET ROLE;
-- Since 16 each grant says whether it is inherited.
SELECT current_setting('server_version_num')::int >= 160000 AS inherits_by_grant \gset
\if :inherits_by_grant
GRANT cr_group TO cr_user WITH INHERIT FALSE;
\else
ALTER ROLE cr_user NOINHERIT;
\endif
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE put(5);
RESET ROLE;
\if :inherits_by_grant
GRANT cr_group TO cr_user WITH INHERIT TRUE;
\else
ALTER ROLE cr_user INHERIT;
\endif
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;
REVOKE cr_group FROM cr_user;
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE pair(1);
RESET ROLE;
ALTER ROLE cr_user SUPERUSER;
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE del(99);
EXECUTE pair(1);
RESET ROLE;
ALTER ROLE cr_user NOSUPERUSER;
SET ROLE cr_user;
EXECUTE get(1);
EXECUTE del(99);
EXECUTE pair(1);
RESET ROLE;
ALTER TABLE cr OWNER TO cr_user;
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;
ALTER TABLE cr OWNER TO CURRENT_USER;
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;

-- What is taken back with a transaction or a savepoint was never given.
BEGIN;
GRANT SELECT ON cr TO cr_user;
SET LOCAL ROLE cr_user;
EXECUTE get(1);
ROLLBACK;
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;
GRANT SELECT ON cr TO cr_user;
BEGIN;
SAVEPOINT a;
REVOKE SELECT ON cr FROM cr_user;
SET LOCAL ROLE cr_user;
EXECUTE get(1);
ROLLBACK TO a;
SET LOCAL ROLE cr_user;
EXECUTE get(1);
EXECUTE pair(1);
COMMIT;
REVOKE ALL ON cr FROM cr_user;

-- Who asks changes from call to call: one statement in one function, called by the owner and by others.
CREATE FUNCTION cr_mine(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT n FROM cr WHERE id = $1); END $$;
CREATE FUNCTION cr_lent(int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $$ DECLARE found int; BEGIN SELECT n INTO found FROM cr WHERE id = $1; RETURN found; END $$;
CREATE FUNCTION cr_both(int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found int; seen text := '';
BEGIN
    FOR i IN 1..3 LOOP
        seen := seen || ' ' || cr_lent($1);
        BEGIN
            SELECT n INTO found FROM cr WHERE id = $1;
            seen := seen || ' ' || found;
        EXCEPTION WHEN insufficient_privilege THEN seen := seen || ' refused';
        END;
    END LOOP;
    RETURN seen;
END $$;
SELECT cr_mine(1), cr_lent(1), cr_both(1);
SELECT cr_mine(1), cr_lent(1), cr_both(1);
SET ROLE cr_user;
SELECT cr_both(1);
-- 18 calls the expression otherwise.
\set SHOW_CONTEXT never
SELECT cr_mine(1);
\set SHOW_CONTEXT errors
RESET ROLE;
SELECT cr_both(1);

-- A view asks as its owner.
CREATE VIEW cr_seen AS SELECT id, n FROM cr;
GRANT SELECT ON cr_seen TO cr_user;
PREPARE seen(int) AS SELECT n FROM cr_seen WHERE id = $1;
EXECUTE seen(1);
EXECUTE seen(1);
SET ROLE cr_user;
EXECUTE seen(1);
EXECUTE seen(1);
RESET ROLE;
ALTER VIEW cr_seen OWNER TO cr_group;
SET ROLE cr_user;
EXECUTE seen(1);
RESET ROLE;
REVOKE SELECT ON cr FROM cr_group;
SET ROLE cr_user;
EXECUTE seen(1);
RESET ROLE;
REVOKE SELECT ON cr_seen FROM cr_user;
GRANT SELECT ON cr TO cr_group;
SET ROLE cr_user;
EXECUTE seen(1);
RESET ROLE;

-- The owner of the database has a role of its own.
GRANT SELECT ON cr TO pg_database_owner;
SELECT datdba::regrole AS owner FROM pg_database WHERE datname = current_database() \gset
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;
SELECT format('ALTER DATABASE %I OWNER TO cr_user', current_database()) \gexec
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;
SELECT format('ALTER DATABASE %I OWNER TO %I', current_database(), :'owner') \gexec
SET ROLE cr_user;
EXECUTE get(1);
RESET ROLE;

-- A function that reads a domain's text asks for the rights of its checks at each start, too.
GRANT SELECT ON cr TO cr_user;
CREATE FUNCTION cr_small(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN $1 < 10; END $$;
REVOKE EXECUTE ON FUNCTION cr_small FROM PUBLIC;
CREATE DOMAIN cr_number AS int CHECK (cr_small(VALUE));
PREPARE checked(int) AS SELECT id FROM cr WHERE id = $1 AND domain_in('5', 'cr_number'::regtype::oid, -1) IS NOT NULL;
PREPARE shown(int) AS SELECT id, domain_in('5', 'cr_number'::regtype::oid, -1) IS NOT NULL AS fits FROM cr WHERE id = $1;
EXECUTE checked(1);
EXECUTE checked(1);
EXECUTE checked(1);
EXECUTE shown(1);
EXECUTE shown(1);
EXECUTE shown(1);
SET ROLE cr_user;
EXECUTE checked(1);
EXECUTE shown(1);
RESET ROLE;
DROP DOMAIN cr_number;
DROP FUNCTION cr_small;

DROP VIEW cr_seen;
DROP FUNCTION cr_mine, cr_lent, cr_both;
DROP FOREIGN TABLE cr;
DROP ROLE cr_user, cr_group;
DEALLOCATE ALL;
RESET plan_cache_mode;
