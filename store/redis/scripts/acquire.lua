-- Take the lock if it is free, and draw its token.
-- KEYS: the lock, its token counter, this owner's tombstone, and the mark where
--       the server must not have forgotten anything (see arrive)
-- ARGV: value, TTL (ms), proposed token, how far it may lead this node's clock
--       (us), how long the counter is kept (ms), quarantine (us), fingerprint of the
--       list of nodes, or of both while one replaces the other
-- Returns {1, token, the clock (s, us)}, {0, value of the holder, its PTTL}, {2}
-- for an owner that was already released, or what gate does.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
if held and held ~= ARGV[1] then
  return {0, held, redis.call('PTTL', KEYS[1])}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local refusal = KEYS[4] and gate(KEYS[4], ARGV[6], ARGV[7], now)
if refusal then
  return refusal
end
if held and last then -- the same request again: same grant, never shortened
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1, last, time[1], time[2]}
end
if redis.call('EXISTS', KEYS[3]) == 1 then
  return {2}
end
-- All nodes usually take the same proposal, and no confirmation is needed. The
-- clock is the floor below which no token falls, even after the counter is
-- lost. Numbers go out through format: tostring would round microseconds.
local token = math.max(now, math.min(tonumber(ARGV[3]), now + tonumber(ARGV[4])))
if last and token <= tonumber(last) then
  token = tonumber(last) + 1
end
token = string.format('%.0f', token)
-- The counter first: should the second write fail, no lock is left behind.
redis.call('SET', KEYS[2], token, 'PX', ARGV[5])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1, token, time[1], time[2]}
