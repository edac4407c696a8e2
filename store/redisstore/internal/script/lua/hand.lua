-- hand hands the lock, which nobody has any more, to the first waiter whose push is
-- received, or whose place says that it never could receive one (see readPlace). This
-- happens in the same step as the release. Other waiters are removed from the queue: their
-- processes are gone, or the mark names another membership than theirs.
--
-- from: the owner that releases the lock; it has no place afterwards
-- to: the owner to give way to. If that one does not wait here, the lock goes to nobody;
--     empty: to the first waiter
-- last, mine: the token counter and the place of from; nil if they were not read
-- step: see newStep
--
-- Returns true, the lock's value and its PTTL if it was given to a waiter. A waiter that barges is
-- only notified that the lock is free. Otherwise the key is still to be deleted, and the result is
-- false, or nothing if no waiter is left.
-- uses leave, offer, readPlace
local function hand(key, from, to, last, mine, step)
  local name = '{' .. key .. '}:'
  while true do
    local owner = to
    if to == '' then
      local entry = call('LPOP', name .. 'line')
      if not entry then
        call('DEL', name .. 'waits')
        return
      end
      owner = string.sub(entry, 18)
    end
    local found, place = name .. 'place:' .. owner, nil
    if mine ~= nil then
      place = call('MGET', found)[1]
    else
      local got = call('MGET', found, name .. 'token', name .. 'place:' .. from)
      place, last, mine = got[1], got[2], got[3]
    end
    if mine then
      leave(name, from, mine)
      mine, place = false, owner ~= from and place
    end
    if to ~= '' then
      if not place then
        return false
      end
      local _, _, ticket = readPlace(place)
      call('LREM', name .. 'line', '1', ticket .. ' ' .. owner)
      to = ''
    end
    if place then
      call('DEL', found)
      local taken, held, left = offer(key, owner, place, last, step)
      if taken then
        return true, held, left
      end
    end
  end
end
