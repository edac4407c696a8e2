-- Renew the grant of an owner of a lock that several can hold.
--
-- KEYS: the lock, its token counter, and the mark (see arrive) of one of several servers
-- ARGV: owner, TTL (ms), kind, weight, slots, proposed token (see renewHold), fingerprint of the
--       membership
-- Returns the result of renewHold.
-- uses renewHold
local refusal
if KEYS[3] then
  -- uses checkMembership
  local text = redis.pcall('GET', KEYS[3])
  refusal = type(text) == 'table' and text or checkMembership(text, ARGV[7])
end
local got = call('MGET', KEYS[1], KEYS[2])
return renewHold(KEYS[1], KEYS[2], got[1], got[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], refusal, nil)
