-- What the specs' setups call: which of the access methods that the run names (twin.first, twin.second) new tables have.
CREATE SCHEMA twin;
CREATE FUNCTION twin.kind(place text) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(current_setting('twin.' || place, true), 'heap') $$;
CREATE PROCEDURE twin.make(place text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('default_table_access_method', twin.kind(place), false);
END $$;
CREATE PROCEDURE twin.first() LANGUAGE plpgsql AS $$ BEGIN CALL twin.make('first'); END $$;
CREATE PROCEDURE twin.second() LANGUAGE plpgsql AS $$ BEGIN CALL twin.make('second'); END $$;
-- A partition or an inheriting table.
CREATE PROCEDURE twin.child(place text, name text, clause text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I %s USING %I', name, clause, twin.kind(place));
END $$;
-- The tables are of the kinds that the run names, or the spec would compare a kind with itself.
CREATE FUNCTION twin.kind_of(relation text) RETURNS name LANGUAGE sql AS $$
  SELECT amname FROM pg_class JOIN pg_am ON pg_am.oid = relam WHERE pg_class.oid = relation::regclass $$;
CREATE PROCEDURE twin.are(one text, other text DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  ASSERT twin.kind_of(one) = twin.kind('first');
  ASSERT other IS NULL OR twin.kind_of(other) = twin.kind('second');
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
