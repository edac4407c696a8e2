-- confirmHold raises the token of an owner's grant of a lock that several can hold, and the token
-- counter, to at least token. Readers that join the owner share that token.
--
-- got: the values of the lock and of its token counter
-- asked: the owner, the token, and slots, those that the grant must have, or a sign for any; see
--     calls/admit
-- time: the clock, nil if it was not read
--
-- Returns {1, counter}, or {0, '', -2} for an owner without such a grant.
-- uses readRecord, writeHold
local function confirmHold(key, counter, got, asked, time)
  local text, last, slots, token = got[1], got[2], asked.slots, asked.token
  time = time or call('TIME')
  local now = time[1] * 1000000 + time[2]
  local ms = (now - now % 1000) / 1000
  local record, h = readRecord(key, text, ms, asked.owner)
  if not h or h.broken == '1' or string.byte(slots) == 61 and h.slots ~= string.sub(slots, 2) then
    if not text and call('PTTL', key) ~= -2 then
      return call('GET', key) -- MGET returns no value for a key that is not a string
    end
    return {0, '', -2}
  end
  if not last or last + 0 < token + 0 then
    last = token
    call('SET', counter, last, 'PX', LIFE)
  end
  if h.token + 0 < token + 0 then
    h.token = token
    if token + 0 > record.top + 0 then
      record.top = token
    end
    writeHold(record, h)
  end
  return {1, last}
end
