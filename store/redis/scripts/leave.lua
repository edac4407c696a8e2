-- Take an owner out of the line, with its place (see place). What is no line is left
-- alone.
local function leave(owner)
  local name = '{' .. KEYS[1] .. '}:'
  local place = redis.call('MGET', name .. 'place:' .. owner)[1]
  if place then
    redis.call('DEL', name .. 'place:' .. owner)
    redis.pcall('LREM', name .. 'line', '1', string.sub(place, 15, 30) .. ' ' .. owner)
  end
  return place
end
