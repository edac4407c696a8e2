-- enqueue gives a request a place in the queue until it is its turn: another owner has the
-- lock, or the next holder must be another one. A place that it has already is refreshed.
--
-- The queue is the list {L}:line, with "ticket owner" for each place, ordered by ticket:
-- the cost of a place does not depend on the length of the queue. The key {L}:waits
-- summarizes the queue and its places. It exists while there are waiters, until a release
-- finds none, and has three numbers:
--   when this key and the queue end (ms): not before the longest place
--   the earliest end of a place in the queue (ms), or a time before it
--   how many places were found alive so far, while the queue is being swept
--
-- wanted: key, ttl, mode, again and place of the request (see readRequest), its owner, and wish,
--     what follows the channel in its place: the value of the lock, or see readWish
-- held, left: the value of the lock, nil if it is free, and its PTTL
-- waits, was: the values of {L}:waits and of the owner's place
-- time: the clock
--
-- Returns {0, value of the holder, its PTTL, position, no-push flag, the clock (s, us)}.
-- Position 1 is next; 0 means that the request was not enqueued, since there is no holder.
-- uses readPlace
local function enqueue(wanted, held, left, waits, was, time)
  local key, owner, ttl, place, sub = wanted.key, wanted.owner, wanted.ttl, wanted.place, string.sub
  if not held and wanted.mode == '2' then
    return {0, '', -2, 0, 0, time[1], time[2]}
  end
  local name = '{' .. key .. '}:'
  local queue = name .. 'line'
  local now = time[1] * 1000000 + time[2]
  local ms = (now - now % 1000) / 1000
  if was and string.match(was, '^%d+()') ~= 31 then
    was = nil -- not a place
  end
  local lasts, bound, seen = 0, 0, 0
  if waits then
    lasts, bound = tonumber(sub(waits, 1, 13)) or 0, tonumber(sub(waits, 15, 27)) or 0
    if string.byte(waits, 29) ~= 48 then
      seen = tonumber(sub(waits, 29)) or 0
    end
  end
  local stale = not waits
  -- A place in the queue may have ended. Each request sweeps a part of a long queue.
  if ms >= bound or seen > 0 then
    -- uses sweep
    bound, seen = sweep(name, bound, seen)
    stale = true
  end
  local ends = math.min(ms + ttl, 9999999999999)
  local noPush, ticket, position = sub(place, 1, 1), sub(place, 2, 17), nil
  if was then
    local _, ended, had = readPlace(was)
    ends, ticket = math.max(ends, ended), had
  elseif wanted.again ~= '1' then
    -- A new waiter's rank is trusted only near this server's clock. A waiter that asks
    -- again keeps its rank, wherever it was in the queue before its place was lost.
    local rank = ticket + 0
    if rank < now - LEAD or rank > now + LEAD then
      ticket = string.format('%016.0f', math.max(now - LEAD, math.min(rank, now + LEAD)))
    end
  end
  local entry = ticket .. ' ' .. owner
  if was then
    -- uses seek
    position = seek(queue, ticket, entry)
  end
  if not position then
    local last = call('LINDEX', queue, '-1')
    if not last or sub(last, 1, 16) <= ticket then
      position = call('RPUSH', queue, entry)
    else
      -- uses insert
      position = insert(queue, ticket, entry)
    end
  end
  if ends > lasts then -- longer than necessary, so that it need not be extended each time
    stale, lasts = true, math.min(ends + ttl, 9999999999999)
    call('PEXPIRE', queue, lasts - ms)
  elseif position == 1 then -- the queue may be new
    call('PEXPIRE', queue, lasts - ms)
  end
  if stale or ends < bound then
    call('SET', name .. 'waits', lasts .. ' ' .. math.min(bound, ends) .. ' ' .. seen, 'PX', lasts - ms)
  end
  call('SET', name .. 'place:' .. owner, noPush .. ends .. ticket .. sub(place, 18) .. ' ' .. wanted.wish, 'PX', was and ends - ms or ttl)
  return {0, held or '', left, position, noPush == '1' and 1 or 0, time[1], time[2]}
end
