-- offer gives the lock to the first waiter, whose place is a text that was removed from the
-- queue, and reports whether that waiter is there to take it. A waiter that only wants to
-- know that the lock is free is told so. The arguments are those of hand. Only the client that
-- releases was compared with the mark.
--
-- The waiter gets a push on its channel: "handed", owner, token, stamp and the clock (s,
-- us); or "free", owner. The grant is written before the push; if nobody receives that, the grant
-- is undone, and then the counter restored, so that a token belongs to one grant only. A subscriber to all channels by a pattern seems to
-- receive every push: then the place of a dead process ends by its TTL.
--
-- Also returns the lock's value and its PTTL, if it was handed over.
-- uses draw, readPlace
local function offer(key, owner, place, last, step)
  local sub, tokens = string.sub, '{' .. key .. '}:token'
  local noPush, ends, _, stamp, lock, flags, channel, value = readPlace(place, true)
  if lock ~= 'm' then
    return false
  end
  local mark, list = step.mark, step.mark and string.match(flags, '^b?g(.+)')
  if list and list ~= step.print then
    local marked = string.match(mark, '^1 %S+ (%S+)')
    if marked ~= '-' and marked ~= list and marked ~= sub(list, 1, 12) and marked ~= sub(list, 14) then
      return false
    end
  end
  local flag, message, handed, left = string.byte(flags), nil, nil, -2
  if flag == 98 or flag == 103 and not mark then
    call('DEL', key)
    message = 'free ' .. owner
  else
    local text = draw(step.proposed, last, step.now)
    -- MGET returns no value for a key that is not a string, so the key must not exist.
    if last then
      call('SET', tokens, text, 'PX', LIFE)
    elseif not call('SET', tokens, text, 'PX', LIFE, 'NX') then
      call('GET', tokens)
    end
    handed, left = value, math.max(1, ends - step.ms)
    call('SET', key, value, 'PX', left)
    message = 'handed ' .. owner .. ' ' .. text .. ' ' .. stamp .. ' ' .. step.time[1] .. ' ' .. step.time[2]
  end
  local sharded = string.byte(channel, 14) == 123 -- see tuning.go
  if redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH', channel, message) ~= 0 or noPush ~= '0' then
    return true, handed, left
  end
  if handed then
    call('DEL', key)
  end
  if handed and last then
    call('SET', tokens, last, 'PX', LIFE)
  elseif handed then
    call('DEL', tokens)
  end
  return false
end
