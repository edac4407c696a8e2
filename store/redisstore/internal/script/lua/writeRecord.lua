-- writeRecord writes the record of a lock (see readRecord) at the time ms, for as long as its
-- longest grant or place, its number of permits, or a seat lasts. Without any it deletes the key:
-- the lock is free. A semaphore that was resized has the longer form for as long as it matters.
-- uses holdText
local function writeRecord(key, record, ms)
  local ends, parts = record.queueEnds, {'', record.kind, string.format('%.0f', record.queueEnds)}
  if record.resized then
    -- uses tooMany
    local seat = record.seat
    if record.kept or seat or tooMany(record) then
      parts[2] = '2 ' .. record.kind
      seat = seat or {who = '', from = 0, to = 0, ends = 0, set = '0'}
      ends = math.max(ends, record.kept or 0, seat.ends)
      parts[4] = string.format('%.0f %s %.0f %.0f %.0f %s', record.kept or 0, seat.who, seat.from, seat.to, seat.ends, seat.set)
    end
  end
  for _, h in ipairs(record.holds) do
    ends = math.max(ends, h.ends)
    parts[#parts + 1] = h.text or holdText(h.value, h.token, string.format('%.0f', h.weight), string.format('%.0f', h.ends), h.begun, h.slots, h.broken, h.made)
  end
  if ends > ms then
    call('SET', key, table.concat(parts, ' '), 'PX', string.format('%.0f', ends - ms))
  else
    call('DEL', key)
  end
end
