-- Renew the grant of an owner of a lock that several can hold.
--
-- KEYS: the lock, its token counter, and the mark (see arrive) of one of several servers
-- ARGV: owner, TTL (ms), fingerprint of the membership
-- Returns the result of renewHold.
-- uses renewHold
local refusal
if KEYS[3] then
  -- uses belongs
  local text = redis.pcall('GET', KEYS[3])
  refusal = type(text) == 'table' and text or belongs(text, ARGV[3])
end
return renewHold(KEYS[1], KEYS[2], call('MGET', KEYS[1])[1], ARGV[1], ARGV[2], refusal, nil)
