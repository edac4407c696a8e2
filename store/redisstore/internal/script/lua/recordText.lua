-- recordText returns a record as clients are shown it: the value of the lock's key, and for each
-- grant, in the order in which they were made, a space and these fields: length of the value,
-- token, weight, end (ms), begin (ms), slots, 1 if it was broken or 0, attempt and value. If one
-- is set, it has the grant that ends first only. The second result is how long the longest of the
-- ends in the text lasts (ms), from which clients know the clock. There is no result if the holders
-- are not there: a member of a cluster is giving them away.
-- uses holdMember, readHold
local function recordText(key, text, one)
  if string.find(text, '^ [sr]%d+ 0 ') then
    return text, call('PTTL', key)
  end
  local name, time = '{' .. key .. '}:', call('TIME')
  local ms = math.floor((time[1] * 1000000 + time[2]) / 1000)
  local fields, holds = call('HGETALL', name .. 'held'), {}
  for i = 1, #fields, 2 do
    holds[fields[i]] = readHold(fields[i + 1], fields[i])
  end
  if not fields[1] then
    return nil
  end
  local longest, shown = string.match(text, '(%d+)$') + 0, {}
  local ends = call('ZRANGE', name .. 'ends', '0', '-1', 'WITHSCORES')
  for i = 1, #ends, 2 do
    local h, till = holds[string.sub(ends[i], 12)], ends[i + 1] + 0
    if h and till > ms and holdMember(h) == ends[i] and not (one and shown[1]) then
      longest, h.ends = math.max(longest, till), ends[i + 1]
      shown[#shown + 1] = h
    end
  end
  table.sort(shown, function(a, b) return a.number + 0 < b.number + 0 end)
  local parts = {text}
  for _, h in ipairs(shown) do
    parts[#parts + 1] = string.format('%.0f %s %.0f %s %s %s %s %s ', #h.value, h.token, h.weight, h.ends, h.begun, h.slots, h.broken, h.made) .. h.value
  end
  return table.concat(parts, ' '), math.max(longest - ms, 0)
end
