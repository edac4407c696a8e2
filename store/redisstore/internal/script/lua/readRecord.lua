-- readRecord reads the record of a lock that several can hold, which is the value of the
-- lock's key, without the grants that have ended by the clock ms (ms). It returns nil for any
-- other value. A record is a space, the kind, another space, and the latest end of a place in
-- the queue (ms), and then for each grant, in their order, a space and these fields:
--   length of the value, token, weight, end (ms), begin (ms), slots (see pickSlots), 1 if it was broken or 0,
--   attempt that made it (empty: several know of it), and value, which is the owner and the
--   description of the holder, as that of a mutex is
-- The kind is s (semaphore) or r (readers share a token) and the limit. Record in record.go is
-- the same in Go.
--
-- The result has the fields kind, limit, shared, queueEnds (the latest end of a place), and holds,
-- each with the fields above as token, weight, ends, begun, slots, broken, made, value and
-- owner, and as text all of them, which has to be nil once a field has changed. A token is a
-- text: tostring would round it.
local function readRecord(text, ms)
  local find, sub = string.find, string.sub
  local _, at, kind, letter, limit, queueEnds = find(text or '', '^ (([sr])(%d+)) (%d+)')
  if not at then
    return nil
  end
  local holds = {}
  while at < #text do
    local _, stop, length, token, weight, ends, begun, slots, broken, made, start, owner = find(text, '^ (%d+) (%d+) (%d+) (%d+) (%d+) ([%d,]+) ([01]) ([^ ]*) ()([^ ]+)', at + 1)
    if not stop then
      return nil
    end
    local from = at + 1
    at = start + length - 1
    if ends + 0 > ms then
      holds[#holds + 1] = {token = token, weight = weight + 0, ends = ends + 0, begun = begun, slots = slots, broken = broken, made = made, value = sub(text, start, at), owner = owner, text = sub(text, from + 1, at)}
    end
  end
  return {kind = kind, limit = limit + 0, shared = letter == 'r', queueEnds = queueEnds + 0, holds = holds}
end
