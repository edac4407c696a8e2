-- Give the lock to us if nobody has it: a majority of nodes has just said that it
-- is ours, and this one has lost it or never had it. No token is drawn.
-- KEYS: the lock, this owner's tombstone
-- ARGV: value, TTL (ms)
-- Returns {1}, {0, value of the holder, its PTTL}, or {2} for an owner that was
-- already released.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return {0, held, redis.call('PTTL', KEYS[1])}
end
if held then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1}
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  return {2}
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {1}
