-- Make our lease last at least the TTL from now; never less than it did, and
-- never create it.
-- KEYS: the lock, its token counter, and the mark (see arrive) of one of several
--       servers
-- ARGV: value, TTL (ms), how long the counter is kept (ms), fingerprint of the
--       list of nodes
-- Returns {1, the clock (s, us)} {0, value of the holder, its PTTL}, or
-- {4, the list that the server is one of}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then
  return {0, held or '', redis.call('PTTL', KEYS[1])}
end
if KEYS[3] then
  local mark = redis.call('GET', KEYS[3])
  local print, list = string.match(mark or '', '^%d+ (%S+) %S+ %S+ (%S+)$')
  local one, other = string.sub(ARGV[4], 1, 12), string.sub(ARGV[4], 14)
  if print and print ~= '-' and print ~= ARGV[4] and print ~= one and print ~= other then
    return {4, list}
  end
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local time = redis.call('TIME')
return {1, time[1], time[2]}
