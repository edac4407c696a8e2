-- Raise the token counter to at least ARGV[2], only where the lock is ours. Where
-- tokens are reserved by it, not further ahead of the clock than LEAD, and at least to
-- ARGV[3].
-- KEYS: the lock, its token counter
-- ARGV: value, token, the least token (empty: ARGV[2])
-- Returns {1, counter, 1 or 0 for whether somebody stands in line} or {0, value of
-- the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then
  return {0, held or '', redis.call('PTTL', KEYS[1])}
end
local token = ARGV[2]
if ARGV[3] ~= '' then
  local time = redis.call('TIME')
  local most = math.max(tonumber(ARGV[3]), time[1] * 1000000 + time[2] + LEAD)
  if tonumber(token) > most then
    token = string.format('%.0f', most)
  end
end
local counter = redis.call('GET', KEYS[2])
if not counter or tonumber(counter) < tonumber(token) then
  counter = token
  redis.call('SET', KEYS[2], counter, 'PX', LIFE)
end
local name = '{' .. KEYS[1] .. '}:'
local line = redis.call('MGET', name .. 'waits')[1] and redis.pcall('LINDEX', name .. 'line', '0')
return {1, counter, type(line) == 'string' and 1 or 0}
