-- Give the lock to us if nobody has it: a majority of nodes has just said that it
-- is ours, and this one has lost it or never had it. No token is drawn.
-- Not in quarantine: an attempt that is still open may count a grant which the
-- server has forgotten.
-- KEYS: the lock, this owner's tombstone, the mark (see arrive)
-- ARGV: value, TTL (ms), and what gate has to know, as in acquire
-- Returns {1}, {0, value of the holder, its PTTL}, {2} for an owner that was
-- already released, or what gate does.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local got = redis.call('MGET', KEYS[1], KEYS[2])
local held = got[1]
if held and held ~= ARGV[1] then
  return {0, held, redis.call('PTTL', KEYS[1])}
end
if held then
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1}
end
local time = redis.call('TIME')
-- include gate
local refusal = gate(KEYS[3], ARGV[3], ARGV[4], ARGV[5], time[1] * 1000000 + time[2])
if refusal then
  return refusal
end
if got[2] then
  return {2}
end
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  return redis.call('GET', KEYS[1]) -- MGET does not see what is no string
end
local attempt = string.match(KEYS[2], ' (.+)', #KEYS[1] + 9)
if attempt then -- see acquire
  redis.call('SET', '{' .. KEYS[1] .. '}:made', attempt, 'PX', LIFE)
end
-- include leave
leave(string.match(ARGV[1], '^[^ ]+'))
return {1}
