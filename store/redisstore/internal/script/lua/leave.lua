-- leave removes an owner and its place from the queue whose keys begin with name. The
-- argument place is the place's text, false if the owner is known to have none, and nil if
-- it was not read yet. A key that is not a list is left alone.
-- uses readPlace
local function leave(name, owner, place)
  if place == nil then
    place = call('MGET', name .. 'place:' .. owner)[1]
  end
  if place then
    call('DEL', name .. 'place:' .. owner)
    local _, _, ticket = readPlace(place)
    redis.pcall('LREM', name .. 'line', '1', ticket .. ' ' .. owner)
  end
end
