-- Those who know one server only look at its mark when they connect.
redis.pcall('PUBLISH', 'leasehold:to:all', '')
