-- Raise the token counter to at least ARGV[2], if the lock is ours. Raise it to ARGV[3]
-- only if that does not lead the clock by more than LEAD, and otherwise as far as
-- allowed.
--
-- KEYS: the lock, its token counter
-- ARGV: value, token, the least token (empty: ARGV[2])
-- Returns {1, counter, 1 if there are waiters or 0} or {0, value of the holder, its
-- PTTL}.
if #KEYS == 0 then return 0 end -- called only to load the script
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
