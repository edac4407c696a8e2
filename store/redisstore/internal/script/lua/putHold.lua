-- putHold writes a grant that a record does not have yet. The arguments are those of addHold. All keys of
-- a record are there as long as the lock's, so that a member of a cluster that is giving its slot
-- away does the steps for it.
-- uses holdMember, lastUntil, markSlots, rankOf, writeHold
local function putHold(record, h, ends)
  if record.isNew then -- an earlier lock of that name may have left something
    call('DEL', record.held, record.ends, record.ranks)
  end
  local first = record.used == 0
  record.used, record.count = record.used + h.weight, record.count + 1
  h.number, h.owner = string.format('%.0f', record.count), string.match(h.value, '^[^ ]+')
  call('ZADD', record.ends, ends, holdMember(h))
  call('ZADD', record.ranks, rankOf(h.owner), h.owner)
  if h.token + 0 > record.top + 0 then
    record.top = h.token
  end
  markSlots(record, h.slots, '1')
  writeHold(record, h)
  if first or ends > record.lasts then -- some of the keys may be new
    lastUntil(record, math.max(ends, record.lasts))
  end
end
