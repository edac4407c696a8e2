-- Look at a lock.
-- KEYS: the lock, its token counter
-- Returns {1, token} for a free lock, {0, value of the holder, PTTL, token}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2]) or '0'
if not held then
  return {1, last}
end
return {0, held, redis.call('PTTL', KEYS[1]), last}
