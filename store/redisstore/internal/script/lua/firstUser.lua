-- firstUser returns the value of a holder in a record or, if there is none, of the first waiter in
-- the queue whose keys begin with name, and the entry of that waiter, before which none is left.
-- Both are nil if there is none.
-- uses readWish
local function firstUser(name, record)
  local entry, place
  while not place do
    entry = call('LINDEX', name .. 'line', '0')
    if not entry then
      break
    end
    place = call('MGET', name .. 'place:' .. string.sub(entry, 18))[1]
    if not place then -- it has ended
      call('LPOP', name .. 'line')
    end
  end
  local wish = place and readWish(place)
  return record.holds[1] and record.holds[1].value or wish and wish.value, entry
end
