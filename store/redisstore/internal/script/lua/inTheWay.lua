-- inTheWay returns the value of a holder that a request for a lock that several can hold has to
-- wait for, and how long it is until one of the grants in its way ends (ms). That is the grant
-- which ends first. On one of several servers the holder is the most senior one, so that waiters
-- learn the same name from all of them.
--
-- fits: the grants leave room; in the way are then those with slots that the request must have
-- slots: of the request (see calls/admit)
-- uses firstHold, readHold
local function inTheWay(record, fits, slots)
  if fits then
    -- uses inSlots
    return inSlots(record, slots)
  end
  local first, ends = firstHold(record)
  if not first then
    return
  end
  local from, senior = 0, nil
  while slots ~= '' and not senior do
    local owner = call('ZRANGE', record.ranks, from, from)[1]
    if not owner then
      break
    end
    senior, from = readHold(call('HMGET', record.held, owner)[1], owner), from + 1
  end
  return (senior or first).value, ends - record.ms
end
