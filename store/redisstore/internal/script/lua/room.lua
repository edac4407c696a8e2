-- room returns the part of the limit that the grants in a record leave. It is negative after
-- a semaphore has become smaller than what is held.
local function room(record)
  return record.limit - record.used
end
