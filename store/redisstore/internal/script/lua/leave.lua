-- leave removes an owner and its place (see place) from the queue. The argument place is
-- false if the owner is known to have none, and nil if it was not read yet. A key that is
-- not a list is left alone.
local function leave(owner, place)
  local name = '{' .. KEYS[1] .. '}:'
  if place == nil then
    place = redis.call('MGET', name .. 'place:' .. owner)[1]
  end
  if place then
    redis.call('DEL', name .. 'place:' .. owner)
    redis.pcall('LREM', name .. 'line', '1', string.sub(place, 15, 30) .. ' ' .. owner)
  end
end
