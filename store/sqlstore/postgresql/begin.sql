-- Leasehold's tables and procedures in PostgreSQL, version @version@.
-- It can be run again, also by a migration tool: it changes what is older, leaves
-- what is there, and refuses to replace a newer version.

-- Functions that others have put into the search path are not called: they would run
-- with the rights of this role. The end of the script restores the path.
SELECT pg_catalog.set_config('leasehold.search_path', pg_catalog.current_setting('search_path'), true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

SELECT pg_advisory_xact_lock(hashtextextended('leasehold schema', 0));

DO $$
DECLARE is_there integer; other text;
BEGIN
  -- IF NOT EXISTS would need the right to create a schema also if it exists.
  IF to_regnamespace('@schema@') IS NULL THEN CREATE SCHEMA @schema@; END IF;
  SELECT r.rolname INTO other FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
    WHERE n.nspname = '@schema@' AND r.rolname <> current_user;
  IF FOUND THEN
    RAISE EXCEPTION 'role % owns schema @schema@, and could use the rights of role %, whose procedures these are to be', quote_ident(other), quote_ident(current_user)
      USING ERRCODE = 'LH004', HINT = 'Install as the role that owns the schema, or into another schema.';
  END IF;
  IF to_regclass('@schema@.meta') IS NULL THEN RETURN; END IF;
  EXECUTE 'SELECT version FROM @schema@.meta' INTO is_there;
  IF is_there > @version@ THEN
    RAISE EXCEPTION 'schema @schema@ has version %, which is newer than version @version@ of this script', is_there
      USING ERRCODE = 'LH003', HINT = 'Use the newer version of the program that installed it.';
  END IF;
  IF is_there < 2 THEN
    ALTER TABLE @schema@.locks ADD COLUMN IF NOT EXISTS lim bigint, ADD COLUMN IF NOT EXISTS shared boolean;
    -- These return other columns now, or are gone.
    DROP FUNCTION IF EXISTS @schema@.inspect(bytea, integer), @schema@.list(bytea, bytea, integer), @schema@.give_signal(bigint);
  END IF;
  IF is_there < 4 THEN
    ALTER TABLE @schema@.locks SET (vacuum_truncate = off);
    ALTER TABLE @schema@.places SET (vacuum_truncate = off);
  END IF;
  IF is_there < 7 THEN
    ALTER TABLE @schema@.locks ADD COLUMN IF NOT EXISTS served bigint NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS era bigint NOT NULL DEFAULT 0;
  END IF;
  IF is_there < 9 THEN
    ALTER TABLE @schema@.meta ADD COLUMN IF NOT EXISTS longest bigint NOT NULL DEFAULT 0;
  END IF;
END $$;
