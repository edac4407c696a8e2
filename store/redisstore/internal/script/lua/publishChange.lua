-- publishChange notifies stores with one server that the membership in the mark changed: they
-- check the mark only when they connect.
local function publishChange()
  redis.pcall('PUBLISH', 'leasehold:to:all', '')
end
