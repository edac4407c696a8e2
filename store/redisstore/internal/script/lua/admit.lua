-- admit takes a lock that several can hold, if there is room for the owner and for all that
-- wait before it, and draws its token. Otherwise it enqueues the request, if asked to. First it
-- hands the lock to waiters, if grants have ended. While others wait behind a waiter that barges
-- and was just notified, the room is left to it.
--
-- One of several servers hands the lock to waiters afterwards if the owner must have certain
-- slots or gets its lease back, both of which do not wait for others; and not at all for a request
-- that wants a place in any case: what is free is then another owner's to heal. If an owner
-- must have certain slots, its lease with other slots ends.
--
-- wanted: the request (see readWanted); its mode is never 2, and h to heal
-- got: the values of the lock, its token counter, the owner's tombstone and {L}:waits
-- step: see newStep
--
-- Returns {1, token, the clock (s, us), smallest slot, and on one of several servers all slots, empty for a read-write lock}, or {0, value of a holder or
-- waiter in the way (see flagged), its PTTL, 0, 0, the clock}, for an enqueued request what enqueue returns,
-- {2} for an owner that was already released, {6, kind in use (empty: a mutex), value of a holder
-- or waiter} if the lock is in use as another kind, or the owner has it with a smaller weight,
-- {7, value of the lock, its PTTL, 0, 0, the clock} if it is a mutex or no lock of this package,
-- or the refusal.
-- uses addHold, findHold, grantReply, newRecord, pickSlots, readRecord, room
local function admit(wanted, got, step)
  local key, kind, weight, slots, mode, time = wanted.key, wanted.kind, wanted.weight, wanted.slots, wanted.mode, step.time
  local refusal = step.refusal
  local owner, attempt = string.match(wanted.value, '^[^ ]+'), string.match(wanted.tombstone, ' (.+)', #key + 9) or ''
  local record, h = readRecord(key, got[1], step.ms, owner)
  if not record and (got[1] or call('PTTL', key) ~= -2) then
    -- uses refuse
    wanted.mode = '' -- it gets no place in any case
    local said = refuse(wanted, got, time, true)
    said[1] = said[1] and 7
    return said
  end
  if got[3] then
    return {2}
  end
  record = record or newRecord(key, kind, step.ms)
  local last, waits, was = got[2], got[4], false
  local exact = string.byte(slots) == 61
  local comesFirst = (exact or mode == 'h') and mode ~= '1' and record.kind == kind
  local head, lasts, other = nil, nil, nil
  if waits and not refusal and not comesFirst and not (mode == '1' and record.kind == kind) then
    -- uses advance
    local more
    last, head, lasts, other, more = advance(record, last, step, nil)
    h = findHold(record, owner) -- it may just have been its turn
    if not head and not more then
      waits = nil
    end
  end
  if got[4] then -- only then are there places; it may just have been its turn
    was = call('MGET', '{' .. key .. '}:place:' .. owner)[1]
  end
  local held = record.used > 0
  if other then
    return {6, other, head}
  elseif record.kind ~= kind and (head or held) then
    -- uses firstHold
    return {6, record.kind, head or firstHold(record).value}
  elseif record.kind ~= kind and waits then
    return refusal -- only what is in quarantine has waiters and room
  elseif record.kind ~= kind then
    record = newRecord(key, kind, step.ms)
  end
  if h and h.broken == '1' then
    return {2}
  elseif exact and refusal then
    return refusal
  elseif h and exact and h.slots ~= string.sub(slots, 2) then
    -- uses endGrant, settle
    endGrant(record, h)
    settle(record)
    h = nil
  end
  if h and weight > h.weight then
    return {6, kind, h.value}
  end
  local left = room(record)
  if (h or weight <= left) and refusal then
    return refusal
  elseif h then -- the same request again gets the same grant, which is never shortened
    -- uses renewTo, writeHold
    renewTo(record, h, step.ms + wanted.ttl)
    if attempt ~= '' and attempt ~= h.made and h.made ~= '' then
      h.made = ''
      writeHold(record, h)
    end
    return grantReply(record, h, slots, time)
  end
  local picked, said = weight <= left and pickSlots(record, weight, slots), nil
  local barges = comesFirst or string.find(wanted.place, '^%d+ %d+ k b')
  local first = not head or string.match(head, '^[^ ]+') == owner
  if picked and (barges or first) and mode ~= '1' then
    if was then
      -- uses leave
      leave('{' .. key .. '}:', owner, was)
    end
    h = {value = wanted.value, weight = weight, made = attempt, slots = picked}
    last = addHold(record, h, step.ms + wanted.ttl, last, step)
    said = grantReply(record, h, slots, time)
  else
    if not picked then
      -- uses inTheWay
      head, lasts = inTheWay(record, weight <= left, slots)
    elseif head then
      -- uses flagged
      head = flagged(head, 'waiting')
    end
    head, lasts = head or '', lasts or -2
    if mode == '' or mode == 'h' then
      said = {0, head, lasts, 0, 0, time[1], time[2]}
    else
      -- uses enqueue
      wanted.owner = owner
      wanted.wish = ' ' .. kind .. (slots ~= '' and ':' .. slots or '') .. ' ' .. string.format('%.0f', weight) .. ' ' .. attempt .. ' ' .. wanted.value
      said = enqueue(wanted, head, lasts, waits, was, time)
      waits = true
      local ends = math.min(step.ms + wanted.ttl, 9999999999999)
      if ends > record.queueEnds then
        record.queueEnds = ends
        -- uses settle
        settle(record)
      end
    end
  end
  if comesFirst and waits then
    -- uses advance
    advance(record, last, step, nil)
  end
  return said
end
