-- Somebody else has the lock, or the next one is to be another: the request is kept
-- until it is its turn.
--
-- A place is the key {L}:place:OWNER, which lasts for the TTL unless it is refreshed:
--   whether it can not be told (1 or 0), when it ends (ms, 13 digits), ticket (16
--   digits), stamp, spare, flags (b: tell it only that the lock is free; then g: it
--   must not be granted without a look at the mark, followed by the fingerprint of its
--   client's list of nodes; or -), channel, and then the value that its lock will have
-- The line is the list {L}:line, with "ticket owner" for each, in the order of
-- tickets: what a place costs does not depend on how many there are.
-- What is known of both is in {L}:waits, which is there while anybody waits, and until
-- a release finds that nobody does: three numbers,
--   when this key and the line end (ms): not before the longest place
--   before when no place ends that is in the line (ms)
--   how many in line were found to have one, while the line is gone through
-- ARGV[5]: 1 or 0 for whether the owner has asked before, 1 for one that only wants the
--          place, 2 where it does so only behind a holder, or 0, 1 or 0 for whether it can
--          not be told anything, its rank (16 digits), and stamp, spare, flags and channel
-- Returns, besides the holder if there is one, the position (1 is the next to come; 0 for
-- one that has none, since there is no holder) and whether it can not be told (1 or 0),
-- and the clock (s, us).
-- Name and owner begin and end the keys. Held is the lock's value, and left its PTTL;
-- waits and was is what there was, the latter at place; time, now and ms are the clock,
-- nil if it was not asked yet.
local sub, byte = string.sub, string.byte
if not held then
  if left ~= -2 then
    -- MGET does not see what is no string.
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
  was = nil -- something else
end
local lasts, bound, seen = 0, 0, 0
if waits then
  lasts, bound = tonumber(sub(waits, 1, 13)) or 0, tonumber(sub(waits, 15, 27)) or 0
  if byte(waits, 29) ~= 48 then
    seen = tonumber(sub(waits, 29)) or 0
  end
end
local stale = not waits
-- A place in line may have ended. Of a long line each who comes looks at a part.
if ms >= bound or seen > 0 then
  -- include sweep
end
local ends = math.min(ms + ARGV[2], 9999999999999)
local ticket, position = sub(ARGV[5], 4, 19), nil
if was then
  ends = math.max(ends, tonumber(sub(was, 2, 14)))
  ticket = sub(was, 15, 30)
elseif byte(ARGV[5]) == 48 then
  -- What a newcomer says of the time is believed near this clock only. Who asks
  -- again keeps the rank it had, wherever it stood before its place was lost.
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
if ends > lasts then -- for longer than need be, so that it need not be said each time
  stale, lasts = true, math.min(ends + ARGV[2], 9999999999999)
  call('PEXPIRE', line, lasts - ms)
elseif position == 1 then -- perhaps there was no line
  call('PEXPIRE', line, lasts - ms)
end
if stale or ends < bound then
  call('SET', name .. 'waits', lasts .. ' ' .. math.min(bound, ends) .. ' ' .. seen, 'PX', lasts - ms)
end
local deaf = sub(ARGV[5], 3, 3)
call('SET', place, deaf .. ends .. ticket .. sub(ARGV[5], 20) .. ' ' .. ARGV[1], 'PX', was and ends - ms or ARGV[2])
return {0, held or '', left, position, deaf == '1' and 1 or 0, time[1], time[2]}
