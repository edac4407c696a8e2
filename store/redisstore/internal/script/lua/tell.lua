-- tell notifies stores with one server, which check the mark only when they connect.
local function tell()
  redis.pcall('PUBLISH', 'leasehold:to:all', '')
end
