-- advance hands a lock that several can hold to waiters: to as many from the head of the queue
-- as there is room for together, as hand does for a mutex. A waiter that must have certain
-- slots is passed over while other owners have them. Places in the queue that are for another kind of lock are removed:
-- their owners are told when they ask again. Each grant is written before its owner is told.
--
-- record: the lock's, or a new one, if the lock is free
-- last: the token counter
-- step: see newStep
-- to: the owner to give way to, which is served before the queue. If it does not wait here or
--     does not fit, nobody is served. Nil: the queue is served.
--
-- Returns the token counter, and, if waiters remain, the value and the PTTL (ms) of the first
-- one's place that was not passed over, and, if another kind is in the way of a lock that nobody
-- has, that kind: of the first place, or a mutex, to which a semaphore resized to one permit was
-- handed; and whether waiters may remain all the same: one was passed over, or there is no room.
-- Without room nobody is looked at.
-- uses offerShare, pickSlots, readPlace, readWish, room, settle
local function advance(record, last, step, to)
  local name = '{' .. record.key .. '}:'
  local queue = name .. 'line'
  local left, changed, isNew = room(record), false, record.isNew and not record.text
  local free = left -- without what waiters that were only notified may take
  local head, lasts, kind, empty
  local at = 0 -- how many places at the beginning are passed over
  while free > 0 or to do
    local entry = not to and call('LINDEX', queue, string.format('%.0f', at))
    if not entry and not to then
      if at == 0 then
        changed = changed or record.queueEnds ~= 0
        record.queueEnds = 0
        empty = true
      end
      break
    end
    local owner = to or string.sub(entry, 18)
    local found = name .. 'place:' .. owner
    local place = call('MGET', found)[1]
    if to then
      if not place then
        break
      end
      entry = select(3, readPlace(place)) .. ' ' .. to
    end
    local wish = place and readWish(place)
    local single = record.kind == 's1' -- whose waiters ask for a mutex
    local other = wish and wish.kind ~= record.kind and not (single and wish.kind == '')
    if single and wish and wish.kind == '' then
      head, lasts = wish.value, call('PTTL', found)
      if record.used == 0 then
        -- uses hand
        call('DEL', record.key, record.held, record.ends, record.ranks)
        record.isNew = true
        local _, held = hand(record.key, '', '', last, false, step)
        return last, held, nil, held and ''
      end
      break
    end
    if other and isNew and record.used == 0 then
      head, lasts, kind = wish.value, call('PTTL', found), wish.kind
      break
    end
    local fits = wish and not other and wish.weight <= record.limit
    local full = fits and wish.weight > left and string.byte(wish.slots) ~= 61
    local picked = fits and not full and pickSlots(record, wish.weight, wish.slots)
    if fits and not picked and not full and not to then
      at = at + 1
    elseif fits and (not picked or wish.weight > left) then
      if not to then
        head, lasts = wish.value, call('PTTL', found)
      end
      break
    else
      if at == 0 and not to then
        call('LPOP', queue) -- frees memory, so that no later write can be refused
      else
        call('LREM', queue, '1', entry)
      end
      call('DEL', found)
      if fits then
        local before = record.used
        wish.picked = picked
        local taken, counter = offerShare(record, owner, place, wish, last, step)
        if taken then
          left, last, changed = left - wish.weight, counter, true
          free = record.used > before and free - wish.weight or free
        end
      end
      to = nil
    end
  end
  if changed and not (isNew and record.used == 0) then
    settle(record)
  end
  if empty then -- last: until then the next step comes here again
    call('DEL', name .. 'waits')
  end
  return last, head, lasts, kind, at > 0 or free <= 0
end
