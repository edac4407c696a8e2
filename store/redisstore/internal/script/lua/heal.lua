-- Give the lock to us if nobody has it. A majority of the nodes has just said that it is
-- ours, and this node has lost it or never had it. No token is drawn. In quarantine the
-- lock is not given: an attempt of another client may count a grant that this server has
-- forgotten.
--
-- KEYS: the lock, the owner's tombstone, the mark (see arrive)
-- ARGV: value, TTL (ms), and the arguments of gate, as in acquire
-- Returns {1}, {0, value of the holder, its PTTL}, {2} for an owner that was already
-- released, or the result of gate.
if #KEYS == 0 then return 0 end -- called only to load the script
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
  return redis.call('GET', KEYS[1]) -- MGET returns no value for a key that is not a string
end
local attempt = string.match(KEYS[2], ' (.+)', #KEYS[1] + 9)
if attempt then -- see acquire
  redis.call('SET', '{' .. KEYS[1] .. '}:made', attempt, 'PX', LIFE)
end
-- include leave
leave(string.match(ARGV[1], '^[^ ]+'))
return {1}
