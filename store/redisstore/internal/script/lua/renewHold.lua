-- renewHold makes the grant of an owner of a lock that several can hold last at least ttl (ms)
-- from now, and keeps the token counter. It never shortens or creates one. A grant that was
-- broken is not renewed.
--
-- text: the lock's value
-- refusal, time: see extend
--
-- Returns {1, the clock (s, us)}, {0, '', -2} for an owner without a grant, or the refusal.
-- uses findHold, readRecord, writeRecord
local function renewHold(key, counter, text, owner, ttl, refusal, time)
  time = time or call('TIME')
  local now = time[1] * 1000000 + time[2]
  local ms = (now - now % 1000) / 1000
  local record = readRecord(text, ms)
  local h = record and findHold(record, owner)
  if not h or h.broken == '1' then
    if not text and call('PTTL', key) ~= -2 then
      return call('GET', key) -- MGET returns no value for a key that is not a string
    end
    return {0, '', -2}
  elseif refusal then
    return refusal
  end
  call('PEXPIRE', counter, LIFE) -- first, since a server that is out of memory refuses a first write that needs some
  if ms + ttl > h.ends then
    h.ends = ms + ttl
    writeRecord(key, record, ms)
  end
  return {1, time[1], time[2]}
end
