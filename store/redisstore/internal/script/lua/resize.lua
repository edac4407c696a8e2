-- resize changes the number of permits of a semaphore that is in use; see renumber.
--
-- record: of the lock; ms: the clock (ms)
-- from, to: kinds (see readRecord)
--
-- Returns {1}, or {6, kind in use, value of a holder or waiter}. A lock that is not in use, or
-- has that kind already, stays as it is.
-- uses firstUser, renumber
local function resize(key, record, from, to, ms)
  local name = '{' .. key .. '}:'
  local value, entry = firstUser(name, record)
  if record.kind == to or not value then
    return {1}
  elseif record.kind ~= from then
    return {6, record.kind, value}
  end
  renumber(key, name, record, entry, to, ms)
  return {1}
end
