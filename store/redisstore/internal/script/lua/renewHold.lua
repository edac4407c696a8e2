-- renewHold makes the grant of an owner of a lock that several can hold last at least ttl (ms)
-- from now, and keeps the token counter. It never shortens or creates one. A grant that was
-- broken is not renewed.
--
-- One of several servers ends a grant with other slots than those of the lease, and the
-- writer's grant of an owner that reads since becomes a reader's: it missed an earlier request.
-- Waiters are served with the next request.
--
-- text, last: the values of the lock and of its token counter
-- kind, weight: of the lease (see readRecord)
-- slots: see calls/admit
-- proposed: see draw
-- refusal, time: see extend
--
-- Returns {1, the clock (s, us)}, {0, '', -2} for an owner without a grant, or the refusal. On one
-- of several servers an owner that could not be granted the lock now gets {0, value of a holder
-- in the way, its PTTL}.
-- uses findHold, readRecord, writeRecord
local function renewHold(key, counter, text, last, owner, ttl, kind, weight, slots, proposed, refusal, time)
  time = time or call('TIME')
  local now = time[1] * 1000000 + time[2]
  local ms = (now - now % 1000) / 1000
  local record = readRecord(text, ms)
  local h, i
  if record then
    h, i = findHold(record, owner)
  end
  if h and string.byte(slots) == 61 and h.slots ~= string.sub(slots, 2) and h.broken ~= '1' and not refusal then
    table.remove(record.holds, i)
    writeRecord(key, record, ms)
    h = nil
  end
  if not h or h.broken == '1' then
    if not text and call('PTTL', key) ~= -2 then
      return call('GET', key) -- MGET returns no value for a key that is not a string
    elseif slots ~= '' and record then
      -- uses inTheWay, pickSlots, room
      local fits = record.kind == kind and weight + 0 <= room(record)
      local value, lasts = nil, nil
      if not fits or not pickSlots(record, weight + 0, slots) then
        value, lasts = inTheWay(record, fits, slots, ms)
      end
      return {0, value or '', lasts or -2}
    elseif slots ~= '' and text then
      return {0, text, call('PTTL', key)}
    end
    return {0, '', -2}
  elseif refusal then
    return refusal
  end
  call('PEXPIRE', counter, LIFE) -- first, since a server that is out of memory refuses a first write that needs some
  local reads = slots ~= '' and record.shared and h.weight > weight + 0
  if reads then
    -- uses draw
    h.weight, h.token = weight + 0, draw(proposed, 0, last, now)
    call('SET', counter, h.token, 'PX', LIFE)
  end
  if reads or ms + ttl > h.ends then
    h.ends = math.max(h.ends, ms + ttl)
    h.text = nil
    writeRecord(key, record, ms)
  end
  return {1, time[1], time[2]}
end
