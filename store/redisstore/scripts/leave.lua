-- Take an owner out of the line, with its place (see place): false if it is known to have
-- none, nil if that was not looked for yet. What is no line is left alone.
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
