-- room returns the part of the limit that the grants in a record leave. It is negative after
-- a semaphore has become smaller than what is held.
-- uses tooMany
local function room(record)
  local left = record.limit
  for _, h in ipairs(record.holds) do
    left = left - h.weight
  end
  if left > 0 and record.resized and tooMany(record) then
    return 0
  end
  return left
end
