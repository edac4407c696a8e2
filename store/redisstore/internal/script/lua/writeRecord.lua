-- writeRecord writes the record of a lock (see readRecord) at the time ms, for as long as its
-- longest grant or place lasts. Without any it deletes the key: the lock is free.
local function writeRecord(key, record, ms)
  local ends, parts = record.line, {'', record.kind, string.format('%.0f', record.line)}
  for _, h in ipairs(record.holds) do
    ends = math.max(ends, h.ends)
    parts[#parts + 1] = string.format('%d %s %.0f %.0f %s %s %s %s %s', #h.value, h.token, h.weight, h.ends, h.begun, h.slots, h.broken, h.made, h.value)
  end
  if ends > ms then
    call('SET', key, table.concat(parts, ' '), 'PX', string.format('%.0f', ends - ms))
  else
    call('DEL', key)
  end
end
