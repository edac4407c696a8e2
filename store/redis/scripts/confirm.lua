-- Raise the token counter to at least ARGV[2], only where the lock is ours.
-- KEYS: the lock, its token counter
-- ARGV: value, token, how long the counter is kept (ms)
-- Returns {1, counter} or {0, value of the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then
  return {0, held or '', redis.call('PTTL', KEYS[1])}
end
local last = redis.call('GET', KEYS[2])
if last and tonumber(last) >= tonumber(ARGV[2]) then
  return {1, last}
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {1, ARGV[2]}
