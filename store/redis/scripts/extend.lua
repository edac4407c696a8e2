-- Make our lease last at least the TTL from now; never less than it did, and
-- never create it.
-- KEYS: the lock, its token counter
-- ARGV: value, TTL (ms), how long the counter is kept (ms)
-- Returns {1, the clock (s, us)} or {0, value of the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then
  return {0, held or '', redis.call('PTTL', KEYS[1])}
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local time = redis.call('TIME')
return {1, time[1], time[2]}
