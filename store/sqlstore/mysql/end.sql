INSERT INTO @schema@.meta (one, version, oldest) VALUES (1, @version@, @oldest@)
ON DUPLICATE KEY UPDATE version = @version@, oldest = @oldest@;

SET SESSION sql_mode = @leasehold_sql_mode;

DO RELEASE_LOCK('leasehold schema');
