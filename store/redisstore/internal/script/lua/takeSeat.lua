-- takeSeat gives a resize the seat: the right to set the number of permits of a semaphore on one of
-- several servers; see internal/rule. The resize before, if any, loses it.
--
-- record: of the lock, or a new one; ms: the clock (ms)
-- who: names the resize
-- from, to: kinds (see readRecord)
-- ttl: how long it has the seat (ms)
--
-- Returns {1}, or {6, kind in use, value of a holder or waiter, empty if the number is only kept} if
-- the lock is in use as another kind than these.
-- uses firstUser, writeRecord
local function takeSeat(key, record, who, from, to, ttl, ms)
  if record.kind ~= from and record.kind ~= to then
    local value = firstUser('{' .. key .. '}:', record)
    if value or record.kept then
      return {6, record.kind, value or ''}
    end
  end
  record.resized, record.seat = true, {who = who, from = string.sub(from, 2) + 0, to = string.sub(to, 2) + 0, ends = ms + ttl, set = '0'}
  writeRecord(key, record, ms)
  return {1}
end
