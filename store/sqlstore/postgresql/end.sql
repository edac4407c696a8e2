-- Only roles that are granted USAGE on the schema and EXECUTE on the functions can
-- use the locks. No role needs rights on the tables.
REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM PUBLIC;

-- Roles that could use the locks before an upgrade can use them after it.
DO $$
DECLARE p regprocedure; r oid;
BEGIN
  FOR p, r IN SELECT f.oid, g.grantee FROM pg_proc f,
      (SELECT DISTINCT a.grantee FROM pg_proc o, aclexplode(o.proacl) a WHERE o.oid = to_regproc('@schema@.ask') AND a.privilege_type = 'EXECUTE' AND a.grantee NOT IN (0, o.proowner)) g
    WHERE f.pronamespace = '@schema@'::regnamespace AND f.prosecdef LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', p, r::regrole);
  END LOOP;
END $$;

INSERT INTO @schema@.meta (version, oldest) VALUES (@version@, @oldest@)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, oldest = excluded.oldest;

SELECT pg_catalog.set_config('search_path', pg_catalog.current_setting('leasehold.search_path'), true);
