-- Renew grants of a lock that several can hold.
--
-- KEYS: the lock, its token counter, {L}:held, {L}:ends (so that a member of a cluster that is
--       giving the slot away refuses a step that it could only begin), and the mark (see arrive)
--       of one of several servers
-- ARGV: TTL (ms), kind, weight, proposed token, the owner and the slots of each lease (see
--       renewHold), fingerprint of the membership
-- Returns the result of renewHold.
-- uses newStep, renewHold
local refusal
if KEYS[5] then
  -- uses checkMembership
  local text = redis.pcall('GET', KEYS[5])
  refusal = type(text) == 'table' and text or checkMembership(text, ARGV[#ARGV])
end
local got = call('MGET', KEYS[1], KEYS[2])
return renewHold(KEYS[1], KEYS[2], got, {n = math.floor((#ARGV - 4) / 2), args = ARGV, before = 0}, newStep(call('TIME'), ARGV[4], nil, nil, refusal))
