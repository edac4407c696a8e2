-- Raise the token counter to at least ARGV[2], only where the lock is ours.
-- KEYS: the lock, its token counter
-- ARGV: value, token
-- Returns {1, counter, 1 or 0 for whether somebody stands in line} or {0, value of
-- the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then
  return {0, held or '', redis.call('PTTL', KEYS[1])}
end
local counter = redis.call('GET', KEYS[2])
if not counter or tonumber(counter) < tonumber(ARGV[2]) then
  counter = ARGV[2]
  redis.call('SET', KEYS[2], counter, 'PX', LIFE)
end
local name = '{' .. KEYS[1] .. '}:'
local line = redis.call('MGET', name .. 'waits')[1] and redis.pcall('LINDEX', name .. 'line', '0')
return {1, counter, type(line) == 'string' and 1 or 0}
