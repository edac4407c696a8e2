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
-- The record of a semaphore that was resized on one of several servers begins with " 2 ", which
-- clients of earlier versions take for no lock of theirs. After the latest end of a place it has
-- until when the number of permits is kept (ms, or 0), and the seat (see takeSeat): the name of
-- its resize (empty: the seat is free), the numbers before and after, its end (ms), and 1 if that
-- resize has set the number or 0.
--
-- The result has the fields kind, limit, shared, queueEnds (the latest end of a place), resized
-- (whether it is such a record), kept and seat (nil if there is none or it is over), and holds,
-- each with the fields above as token, weight, ends, begun, slots, broken, made, value and
-- owner, and as text all of them, which has to be nil once a field has changed. A token is a
-- text: tostring would round it.
local function readRecord(text, ms)
  local find, sub = string.find, string.sub
  local _, at, kind, letter, limit, queueEnds = find(text or '', '^ (([sr])(%d+)) (%d+)')
  local resized, kept, seat = false, nil, nil
  if not at then
    _, at, kind, letter, limit, queueEnds = find(text or '', '^ 2 (([sr])(%d+)) (%d+)')
    if not at then
      return nil
    end
    local _, stop, lasts, who, from, to, till, set = find(text, '^ (%d+) ([^ ]*) (%d+) (%d+) (%d+) ([01])', at + 1)
    if not stop then
      return nil
    end
    resized, at = true, stop
    if lasts + 0 > ms then
      kept = lasts + 0
    end
    if till + 0 > ms then
      seat = {who = who, from = from + 0, to = to + 0, ends = till + 0, set = set}
    end
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
  return {kind = kind, limit = limit + 0, shared = letter == 'r', queueEnds = queueEnds + 0, resized = resized, kept = kept, seat = seat, holds = holds}
end
