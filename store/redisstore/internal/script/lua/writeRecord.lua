-- writeRecord writes the record of a lock (see readRecord) at the time ms, for as long as its
-- longest grant or place lasts. Without any it deletes the key: the lock is free.
-- uses holdText
local function writeRecord(key, record, ms)
  local ends, parts = record.queueEnds, {'', record.kind, string.format('%.0f', record.queueEnds)}
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
