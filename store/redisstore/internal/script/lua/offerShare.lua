-- offerShare offers a lock that several can hold to a waiter, whose place was removed from the
-- queue, and reports whether that waiter is there to take it. It is offer for such a lock,
-- and the push of a grant has the smallest slot too, and on one of several servers all slots of
-- a semaphore. Also returns the token
-- counter.
--
-- wish: of the place (see readWish), and picked, the slots of the grant
-- last: the token counter; step: see newStep
-- uses addHold, findHold, readPlace
local function offerShare(record, owner, place, wish, last, step)
  local picked = wish.picked
  local noPush, ends, _, stamp, _, flags, channel = readPlace(place, true)
  local list = step.mark and string.match(flags, '^b?g(.+)')
  if list and list ~= step.print then
    -- uses checkMembership
    if checkMembership(step.mark, list) then
      return false
    end
  end
  if findHold(record, owner) then -- its place is from before that grant
    return false
  end
  local flag, message, counter, h = string.byte(flags), nil, last, nil
  if flag == 98 or flag == 103 and not step.mark then
    message = 'free ' .. owner
  else
    h = {value = wish.value, weight = wish.weight, made = wish.made, slots = picked}
    counter = addHold(record, h, ends, last, step)
    message = string.format('handed %s %s %s %s %s %s', owner, h.token, stamp, step.time[1], step.time[2], string.match(picked, '%d+'))
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
