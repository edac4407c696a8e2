-- Only roles that are granted USAGE on the schema and EXECUTE on the functions can
-- use the locks. No role needs rights on the tables.
REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM PUBLIC;

INSERT INTO @schema@.meta (version, oldest) VALUES (@version@, @oldest@)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, oldest = excluded.oldest;
