-- admit takes a lock that several can hold, if there is room for the owner and for all that
-- wait before it, and draws its token. Otherwise it enqueues the request, if asked to. First it
-- hands the lock to waiters, if grants have ended. While others wait behind a waiter that barges
-- and was just notified, the room is left to it.
--
-- key, counter, tomb, proposed, spare, mode, again, refusal: see acquire; mode is never 2
-- got: the values of key, counter and tomb, and, if they were read, of {L}:waits and of the
--     owner's place
-- kind, weight: of the request (see readRecord)
-- value, ttl (ms): of the grant
-- place: see acquire; its spare is k
-- time: the clock, nil if it was not read
-- mark, print: see hand
--
-- Returns {1, token, the clock (s, us), how many tokens below it are reserved, slot}, or {0,
-- value of a holder or waiter in the way, its PTTL, 0, 0, the clock}, for an enqueued request
-- what enqueue returns, {2} for an owner that was already released, {6, kind in use (empty: a
-- mutex), value of a holder or waiter} if the lock is in use as another kind, or the owner has
-- it with a smaller weight, {7, value of the lock, its PTTL, 0, 0, the clock} if it is a mutex
-- or no lock of this package, or the refusal.
-- uses addHold, findHold, newRecord, readRecord, room, writeRecord
local function admit(key, counter, tomb, got, kind, weight, value, ttl, proposed, spare, mode, again, place, time, refusal, mark, print)
  time = time or call('TIME')
  local now = time[1] * 1000000 + time[2]
  local ms = (now - now % 1000) / 1000
  local name, owner, attempt = '{' .. key .. '}:', string.match(value, '^[^ ]+'), string.match(tomb, ' (.+)', #key + 9) or ''
  local record = readRecord(got[1], ms)
  local isNew = not record
  if isNew and (got[1] or call('PTTL', key) ~= -2) then
    -- uses refuse
    local said = refuse(key, tomb, got, value, ttl, '', again, place, time, true)
    said[1] = said[1] and 7
    return said
  end
  if got[3] then
    return {2}
  end
  record, weight = record or newRecord(kind), weight + 0
  local last, waits, was = got[2], got[4], got[5]
  if waits == nil then
    local more = call('MGET', name .. 'waits', name .. 'place:' .. owner)
    waits, was = more[1], more[2]
  end
  local head, lasts, other, settled = nil, nil, nil, nil
  if waits and not refusal then
    -- uses advance
    last, head, lasts, other = advance(key, record, isNew, last, proposed, time, mark, print)
    was = was and call('MGET', name .. 'place:' .. owner)[1] -- it may just have been its turn
    isNew, waits = isNew and not record.holds[1], head and waits
  end
  local holds = record.holds
  if other then
    return {6, other, head}
  elseif record.kind ~= kind and (head or holds[1]) then
    return {6, record.kind, head or holds[1].value}
  elseif record.kind ~= kind and waits then
    return refusal -- only what is in quarantine has waiters and room
  elseif record.kind ~= kind then
    record = newRecord(kind)
    holds = record.holds
  end
  local h = findHold(record, owner)
  if h and h.broken == '1' then
    return {2}
  elseif h and weight > h.weight then
    return {6, kind, h.value}
  end
  local left = room(record)
  local barges = string.find(place, '^%d+ %d+ k b')
  local first = not waits or head and string.match(head, '^[^ ]+') == owner
  local fits = weight <= left and (barges or first) and mode ~= '1'
  if (h or weight <= left) and refusal then
    return refusal
  elseif h then -- the same request again gets the same grant, which is never shortened
    if attempt ~= '' and attempt ~= h.made then
      h.made = ''
    end
    h.ends = math.max(h.ends, ms + ttl)
    writeRecord(key, record, ms)
    return {1, h.token, time[1], time[2], 0, h.slot}
  elseif fits then
    if was then
      -- uses leave
      leave(name, owner, was)
    end
    local text, reserved, after
    h, text, reserved, after = addHold(record, value, weight, attempt, ms + ttl, proposed, spare, last, now)
    call('SET', counter, after, 'PX', LIFE)
    writeRecord(key, record, ms)
    return {1, text, time[1], time[2], reserved, h.slot}
  end
  if weight > left or not head then -- the grants alone leave no room
    for _, o in ipairs(holds) do
      if not settled or o.ends < settled.ends then
        settled = o
      end
    end
  end
  if settled then
    head, lasts = settled.value, settled.ends - ms
  end
  head, lasts = head or '', lasts or -2
  if mode == '' then
    return {0, head, lasts, 0, 0, time[1], time[2]}
  end
  -- uses enqueue
  local wish = ' ' .. kind .. ' ' .. string.format('%.0f', weight) .. ' ' .. spare .. ' ' .. attempt .. ' ' .. value
  local said = enqueue(key, owner, wish, ttl, mode, again, place, head, lasts, waits, was, time)
  local ends = math.min(ms + ttl, 9999999999999)
  if ends > record.line then
    record.line = ends
    writeRecord(key, record, ms)
  end
  return said
end
