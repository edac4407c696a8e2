-- Enqueue the request until it is its turn: another owner has the lock, or the next
-- holder must be another one.
--
-- A place is the key {L}:place:OWNER, which lasts for the TTL unless it is refreshed:
--   no-push flag (1: the client cannot receive pushes; or 0), when the place ends (ms, 13
--   digits), ticket (16 digits), stamp, spare, flags (b: only notify it that the lock is
--   free; then g: grant it the lock only after a check of the mark, followed by the
--   fingerprint of its client's membership; or -), channel, and then the value that its
--   lock will have
-- The queue is the list {L}:line, with "ticket owner" for each place, ordered by ticket:
-- the cost of a place does not depend on the length of the queue. The key {L}:waits
-- summarizes both. It exists while there are waiters, until a release finds none, and has
-- three numbers:
--   when this key and the queue end (ms): not before the longest place
--   the earliest end of a place in the queue (ms), or a time before it
--   how many places were found alive so far, while the queue is being swept
-- ARGV[5]: 1 or 0 for whether the owner has asked before; 1 for an owner that wants to wait
--          even if nobody has the lock, 2 for one that wants to wait only behind a holder,
--          or 0; the no-push flag; the rank (16 digits); and stamp, spare, flags, channel
-- Returns, with the holder if there is one, the position (1 is next; 0 for a request that
-- was not enqueued, since there is no holder), the no-push flag, and the clock (s, us).
--
-- The including script sets these: name and owner, which begin and end the keys; held and
-- left, the lock's value and PTTL; waits, and was, the value at place; and time, now and
-- ms, the clock, nil if it was not read yet.
local sub, byte = string.sub, string.byte
if not held then
  if left ~= -2 then
    -- MGET returns no value for a key that is not a string.
    -- include redisson
    held = redisson(KEYS[1])
    if not held then
      return call('GET', KEYS[1])
    end
  elseif byte(ARGV[5], 2) == 50 then
    time = time or call('TIME')
    return {0, '', -2, 0, 0, time[1], time[2]}
  end
end
if not now then
  time = time or call('TIME')
  now = time[1] * 1000000 + time[2]
  ms = (now - now % 1000) / 1000
end
local line = name .. 'line'
if was and string.match(was, '^%d+()') ~= 31 then
  was = nil -- not a place
end
local lasts, bound, seen = 0, 0, 0
if waits then
  lasts, bound = tonumber(sub(waits, 1, 13)) or 0, tonumber(sub(waits, 15, 27)) or 0
  if byte(waits, 29) ~= 48 then
    seen = tonumber(sub(waits, 29)) or 0
  end
end
local stale = not waits
-- A place in the queue may have ended. Each request sweeps a part of a long queue.
if ms >= bound or seen > 0 then
  -- include sweep
end
local ends = math.min(ms + ARGV[2], 9999999999999)
local ticket, position = sub(ARGV[5], 4, 19), nil
if was then
  ends = math.max(ends, tonumber(sub(was, 2, 14)))
  ticket = sub(was, 15, 30)
elseif byte(ARGV[5]) == 48 then
  -- A new waiter's rank is trusted only near this server's clock. A waiter that asks
  -- again keeps its rank, wherever it was in the queue before its place was lost.
  local rank = ticket + 0
  if rank < now - LEAD or rank > now + LEAD then
    ticket = string.format('%016.0f', math.max(now - LEAD, math.min(rank, now + LEAD)))
  end
end
local entry = ticket .. ' ' .. owner
if was then
  -- include seek
end
if not position then
  local last = call('LINDEX', line, '-1')
  if not last or sub(last, 1, 16) <= ticket then
    position = call('RPUSH', line, entry)
  else
    -- include insert
  end
end
if ends > lasts then -- longer than necessary, so that it need not be extended each time
  stale, lasts = true, math.min(ends + ARGV[2], 9999999999999)
  call('PEXPIRE', line, lasts - ms)
elseif position == 1 then -- the queue may be new
  call('PEXPIRE', line, lasts - ms)
end
if stale or ends < bound then
  call('SET', name .. 'waits', lasts .. ' ' .. math.min(bound, ends) .. ' ' .. seen, 'PX', lasts - ms)
end
local deaf = sub(ARGV[5], 3, 3)
call('SET', place, deaf .. ends .. ticket .. sub(ARGV[5], 20) .. ' ' .. ARGV[1], 'PX', was and ends - ms or ARGV[2])
return {0, held or '', left, position, deaf == '1' and 1 or 0, time[1], time[2]}
