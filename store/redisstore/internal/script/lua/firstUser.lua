-- firstUser returns the value of a holder in a record or, if there is none, of the first waiter in
-- the queue whose keys begin with name. It returns nil if there is none.
-- uses firstHold, readWish
local function firstUser(name, record)
  local h = record.used > 0 and firstHold(record)
  while not h do
    local entry = call('LINDEX', name .. 'line', '0')
    if not entry then
      return nil
    end
    local place = call('MGET', name .. 'place:' .. string.sub(entry, 18))[1]
    if place then
      local wish = readWish(place)
      return wish and wish.value
    end
    call('LPOP', name .. 'line') -- it has ended
  end
  return h.value
end
