-- resize changes the number of permits of a semaphore that is in use. Grants stay as they are.
-- Waiters lose their places, since they asked for the earlier number: they are notified, as if
-- the lock were free, and learn it when they ask again.
--
-- record: of the lock
-- from, to: kinds (see readRecord)
--
-- Returns {1}, or {6, kind in use, value of a holder or waiter}. A lock that is not in use, or
-- has that kind already, stays as it is.
-- uses firstUser, readPlace, settle
local function resize(record, from, to)
  local name = '{' .. record.key .. '}:'
  local value = firstUser(name, record)
  if record.kind == to or not value then
    return {1}
  elseif record.kind ~= from then
    return {6, record.kind, value}
  end
  record.kind, record.limit, record.queueEnds = to, string.sub(to, 2) + 0, 0
  settle(record)
  local entry = call('LINDEX', name .. 'line', '0')
  while entry do
    local owner = string.sub(entry, 18)
    local place = call('MGET', name .. 'place:' .. owner)[1]
    call('LPOP', name .. 'line')
    call('DEL', name .. 'place:' .. owner)
    if place then
      local _, _, _, _, _, _, channel = readPlace(place, true)
      if channel then
        redis.pcall(string.byte(channel, 14) == 123 and 'SPUBLISH' or 'PUBLISH', channel, 'free ' .. owner)
      end
    end
    entry = call('LINDEX', name .. 'line', '0')
  end
  call('DEL', name .. 'waits')
  return {1}
end
