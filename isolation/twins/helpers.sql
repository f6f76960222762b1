-- What the specs' setups call: which of the kinds that the run names (twin.first, twin.second) new tables have: heap (off), a foreign table of the
-- wrapper (on), or a table of the access method (table).
CREATE SCHEMA twin;
CREATE FUNCTION twin.kind(place text) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(current_setting('twin.' || place, true), 'off') $$;
-- A session that names its default access method gets no foreign tables: so it is named in runs that have none.
CREATE PROCEDURE twin.make(place text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('mot.create_tables', CASE twin.kind(place) WHEN 'on' THEN 'on' ELSE 'off' END, false);
  IF 'table' IN (twin.kind('first'), twin.kind('second')) THEN
    PERFORM set_config('default_table_access_method', CASE twin.kind(place) WHEN 'table' THEN 'mot' ELSE 'heap' END, false);
  END IF;
END $$;
CREATE PROCEDURE twin.first() LANGUAGE plpgsql AS $$ BEGIN CALL twin.make('first'); END $$;
CREATE PROCEDURE twin.second() LANGUAGE plpgsql AS $$ BEGIN CALL twin.make('second'); END $$;
-- A partition or an inheriting table, of which mot.create_tables makes a heap table.
CREATE PROCEDURE twin.child(place text, name text, clause text) LANGUAGE plpgsql AS $$
BEGIN
  CASE twin.kind(place)
    WHEN 'on' THEN EXECUTE format('CREATE FOREIGN TABLE %I %s SERVER mot', name, clause);
    WHEN 'table' THEN EXECUTE format('CREATE TABLE %I %s USING mot', name, clause);
    ELSE EXECUTE format('CREATE TABLE %I %s USING heap', name, clause);
  END CASE;
END $$;
-- The tables are of the kinds that the run names, or the spec would compare a kind with itself.
CREATE FUNCTION twin.kind_of(relation text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN relkind = 'f' THEN 'on' WHEN amname = 'mot' THEN 'table' ELSE 'off' END
  FROM pg_class LEFT JOIN pg_am ON pg_am.oid = relam WHERE pg_class.oid = relation::regclass $$;
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
