-- Notify stores with one server, which check the mark only when they connect.
redis.pcall('PUBLISH', 'leasehold:to:all', '')
