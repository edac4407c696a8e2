-- room returns the part of the limit that the grants in a record leave. It is negative after
-- a semaphore has become smaller than what is held.
local function room(record)
  local left = record.limit
  for _, h in ipairs(record.holds) do
    left = left - h.weight
  end
  return left
end
