-- readRecord reads the record of a lock that several can hold. It ends the grants that have ended
-- by the clock ms (ms). The argument text is the value of the lock's key; the result is nil if
-- that is not such a lock. The second result is the grant of owner, if it has one. A record is in
-- four keys, and no step touches more of it than the grants that it is about:
--   L          a space, the kind, another space, and the latest end of a place in the queue (ms).
--              The kind is s (semaphore) or r (readers share a token) and the limit. This key
--              lasts as long as the longest grant or place, and the others mean nothing without it
--   {L}:held   a hash with a field for each grant, named by its owner: its number, token, weight,
--              begin (ms), slots (see pickSlots), 1 if it was broken or 0, the attempt that made
--              it (empty: several know of it), and the value, which is the owner and the
--              description of the holder, as that of a mutex is. The field " " has the sums:
--              weight of all grants, how many there were, the largest token of one, and a digit
--              for each slot: 1 if it is taken. They are written with the field of a grant, in one
--              command, so that a script that fails leaves none of them behind the others
--   {L}:ends   when each grant ends (ms). Its members are the number and the owner of the grant
--   {L}:ranks  the owners of the grants, the most senior one first, for one of several servers
-- A member of the last two without a grant is left over from a script that failed, and ignored.
-- The first grant of a free lock is in the lock's key alone, behind the rest, as recordText shows it.
-- Most locks only see the release of that; any other step writes all keys (see unfold). In a cluster,
-- where keys move one by one, they are there from the beginning.
--
-- The record has these as the fields kind, limit, shared, queueEnds, used, count, top and bits.
-- isNew is set if nothing of it is written yet. A grant is what readHold returns. A token is a
-- text: tostring would round it. Record in record.go is what clients are shown; see recordText.
-- uses newRecord, readHold
local function readRecord(key, text, ms, owner)
  if string.find(text or '', '^ [sr]%d+ 0 ') then
    -- uses unfold
    text = unfold(key, text, ms)
  end
  local kind, queueEnds = string.match(text or '', '^ ([sr]%d+) (%d+)$')
  if not kind then
    return nil
  end
  local record = newRecord(key, kind, ms)
  local got = call('HMGET', record.held, ' ', owner)
  record.isNew, record.queueEnds, record.text, record.lasts = false, queueEnds + 0, text, ms + call('PTTL', key)
  if got[1] then
    local used, count, top, bits = string.match(got[1], '^(%d+) (%d+) (%d+) ([01]*)$')
    record.used, record.count, record.top, record.bits = used + 0, count + 0, top, bits
  end
  local first = call('ZRANGE', record.ends, '0', '0', 'WITHSCORES')[2]
  if first and first + 0 <= ms then
    -- uses dropEnded
    dropEnded(record)
    got = call('HMGET', record.held, ' ', owner)
  end
  return record, readHold(got[2], owner)
end
