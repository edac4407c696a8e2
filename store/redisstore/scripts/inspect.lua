-- Look at a lock, and at the line of those who wait for it.
-- KEYS: the lock, its token counter, the mark (see arrive) where there is one
-- ARGV: how many places to tell at most
-- Returns {1, token, quarantine, why, line} for a free lock, {0, value of the holder,
-- PTTL, token, quarantine, why, line}, with how long the quarantine still lasts (us)
-- and, for each who waits, the value its lock will have and the place's PTTL.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then -- it is no string
  -- include redisson
  local holder = redisson(KEYS[1])
  if not holder then
    return held
  end
  held = holder
end
local last = redis.call('GET', KEYS[2]) or '0'
-- include shut
local left, why = shut(KEYS[3])
local places, name, from = {}, '{' .. KEYS[1] .. '}:', 0
repeat
  local some = redis.pcall('LRANGE', name .. 'line', from, from + 99) -- if it is one: who only looks need not be let do more
  for _, entry in ipairs(some) do
    local place = redis.call('GET', name .. 'place:' .. string.sub(entry, 18))
    local value = string.match(place or '', '^%d+ %d+ %d+ %S+ %S+ (.+)$')
    if value and #places < 2 * ARGV[1] then
      places[#places + 1] = value
      places[#places + 1] = redis.call('PTTL', name .. 'place:' .. string.sub(entry, 18))
    end
  end
  from = from + 100
until #some < 100 or #places >= 2 * ARGV[1]
if not held then
  return {1, last, left, why, places}
end
return {0, held, redis.call('PTTL', KEYS[1]), last, left, why, places}
