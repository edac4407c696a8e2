-- offerShare offers a lock that several can hold to a waiter, whose place was removed from the
-- queue, and reports whether that waiter is there to take it. It is offer for such a lock,
-- and the push of a grant has the smallest slot too, and on one of several servers all slots of
-- a semaphore. Also returns the token
-- counter.
--
-- wish: of the place (see readWish); picked: the slots of the grant
-- now: the clock (us); the other arguments are those of offer
-- uses addHold, findHold, readPlace
local function offerShare(record, owner, place, wish, picked, proposed, last, now, time, mark, print)
  local noPush, ends, _, stamp, _, flags, channel = readPlace(place, true)
  local list = mark and string.match(flags, '^b?g(.+)')
  if list and list ~= print then
    -- uses checkMembership
    if checkMembership(mark, list) then
      return false
    end
  end
  if findHold(record, owner) then -- its place is from before that grant
    return false
  end
  local flag, message, counter = string.byte(flags), nil, last
  local h
  if flag == 98 or flag == 103 and not mark then
    message = 'free ' .. owner
  else
    h, counter = addHold(record, wish.value, wish.weight, wish.made, picked, ends, proposed, last, now, wish.slots ~= '', mark)
    message = string.format('handed %s %s %s %s %s %s', owner, h.token, stamp, time[1], time[2], string.match(picked, '%d+'))
    if wish.slots ~= '' and not record.shared then
      message = message .. ' ' .. picked
    end
  end
  local sharded = string.byte(channel, 14) == 123 -- see tuning.go
  if redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH', channel, message) ~= 0 or noPush ~= '0' then
    return true, counter
  end
  if h then
    -- uses endGrant
    endGrant(record, h) -- before the counter is restored: a token belongs to one grant
    if counter ~= last and last then
      call('SET', '{' .. record.key .. '}:token', last, 'PX', LIFE)
    elseif counter ~= last then
      call('DEL', '{' .. record.key .. '}:token')
    end
  end
  return false
end
