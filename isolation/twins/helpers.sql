-- What the specs' setups call: which of the kinds that the run names (twin.first, twin.second; on: memory-optimized) new tables have.
CREATE SCHEMA twin;
CREATE FUNCTION twin.kind(place text) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(current_setting('twin.' || place, true), 'off') $$;
CREATE PROCEDURE twin.first() LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('mot.create_tables', twin.kind('first'), false); END $$;
CREATE PROCEDURE twin.second() LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('mot.create_tables', twin.kind('second'), false); END $$;
-- A partition or an inheriting table, of which mot.create_tables makes a heap table.
CREATE PROCEDURE twin.child(place text, name text, clause text) LANGUAGE plpgsql AS $$
DECLARE is_mot bool := twin.kind(place) = 'on';
BEGIN
  EXECUTE format('CREATE %s TABLE %I %s %s', CASE WHEN is_mot THEN 'FOREIGN' END, name, clause, CASE WHEN is_mot THEN 'SERVER mot' END);
END $$;
-- The tables are of the kinds that the run names, or the spec would compare a kind with itself.
CREATE PROCEDURE twin.are(one text, other text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  ASSERT (SELECT relkind = 'f' FROM pg_class WHERE oid = one::regclass) = (twin.kind('first') = 'on');
  ASSERT other IS NULL OR (SELECT relkind = 'f' FROM pg_class WHERE oid = other::regclass) = (twin.kind('second') = 'on');
END $$;
-- Has every query that can run in parallel do so. For sessions, and to be called before a transaction begins: a call takes a snapshot. 16 gave the
-- setting another name.
CREATE PROCEDURE twin.parallel(wanted bool) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config(name, CASE WHEN wanted THEN 'on' ELSE 'off' END, false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
  ASSERT FOUND;
END $$;
-- Roles are the server's, and outlive the database: made once.
DO $$ BEGIN IF to_regrole('mot_twin_truncates') IS NULL THEN CREATE ROLE mot_twin_truncates; END IF; END $$;
