-- unfold writes the record of a lock whose only grant is in the lock's key (see readRecord), so that
-- the grant can change, or others can join it. The argument text is the value of that key, and
-- the result is its new one.
-- uses newRecord, putHold
local function unfold(key, text, ms)
  local kind, token, weight, ends, begun, slots, value = string.match(text, '^ ([sr]%d+) 0 %d+ (%d+) (%d+) (%d+) (%d+) ([%d,]+) 0  (.*)$')
  if not kind then -- another client's
    return text
  end
  local record = newRecord(key, kind, ms)
  putHold(record, {value = value, weight = weight + 0, made = '', slots = slots, token = token, begun = begun, broken = '0'}, math.max(ends + 0, ms + 1)) -- the key may outlast it by a ms
  return record.text
end
