-- Take the lock if it is free, and draw its token.
-- KEYS: the lock, its token counter, this owner's tombstone, and the mark where
--       the server must not have forgotten anything (see arrive)
-- ARGV: value, TTL (ms), proposed token, how far it may lead this node's clock
--       (us), how long the counter is kept (ms), quarantine (us), fingerprint of the
--       list of nodes, or of both while one replaces the other
-- Returns {1, token, the clock (s, us)}, {0, value of the holder, its PTTL}, {2}
-- for an owner that was already released, or {3, how long the quarantine still
-- lasts (us), why}, or {4, the list that the server is one of}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
if held and held ~= ARGV[1] then
  return {0, held, redis.call('PTTL', KEYS[1])}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if KEYS[4] then
  local mark = redis.call('GET', KEYS[4])
  local opens, why, print, list = string.match(mark or '', '^(%d+) %S+ (%S+) ?(%S*) ?(%S*)$')
  if not opens then -- somebody has emptied it while we were here
    opens, why, print = now + ARGV[6], 'emptied', ARGV[7]
    redis.call('SET', KEYS[4], string.format('%.0f - emptied %s', opens, print))
  end
  local one, other = string.sub(ARGV[7], 1, 12), string.sub(ARGV[7], 14)
  if print ~= '' and print ~= ARGV[7] and print ~= one and print ~= other then
    return {4, list}
  end
  if now < tonumber(opens) then
    return {3, string.format('%.0f', opens - now), why}
  end
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
