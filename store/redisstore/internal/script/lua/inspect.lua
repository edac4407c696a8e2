-- Read a lock and the queue of its waiters.
--
-- KEYS: the lock, its token counter, the mark (see arrive) if there is one
-- ARGV: how many places to return at most
-- Returns {1, token, quarantine, why, queue, note} for a free lock, or {0, value of the
-- holder, PTTL, token, quarantine, why, queue, note}. The note is about the lease that was
-- broken last (see break), or empty. The quarantine is how long it still lasts (us).
-- The queue has two values per waiter: the value that its lock will have, and its place's
-- PTTL.
if #KEYS == 0 then return 0 end -- called only to load the script
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then -- the key is not a string
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
  local some = redis.pcall('LRANGE', name .. 'line', from, from + 99) -- if it is a list; a user that only looks needs no further permission
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
local note = redis.pcall('GET', name .. 'broken')
note = type(note) == 'string' and note or ''
if not held then
  return {1, last, left, why, places, note}
end
return {0, held, redis.call('PTTL', KEYS[1]), last, left, why, places, note}
