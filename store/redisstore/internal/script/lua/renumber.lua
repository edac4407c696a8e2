-- renumber gives a record the kind to, another number of permits, and writes it. Grants stay as
-- they are. Waiters lose their places, since they asked for the earlier number: they are
-- notified, as if the lock were free, and learn it when they ask again. The first of them has
-- the entry, which firstUser returns.
-- uses readPlace, writeRecord
local function renumber(key, name, record, entry, to, ms)
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
  record.kind, record.queueEnds = to, 0
  record.limit = string.sub(to, 2) + 0
  writeRecord(key, record, ms)
end
