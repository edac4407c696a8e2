-- Confirm a token of a lock that several can hold, on one of several servers.
--
-- KEYS: the lock, its token counter, {L}:held (see calls/renewHold)
-- ARGV: owner, slots, token (see confirmHold)
-- Returns the result of confirmHold.
-- uses confirmHold
local got = call('MGET', KEYS[1], KEYS[2])
return confirmHold(KEYS[1], KEYS[2], got, {owner = ARGV[1], slots = ARGV[2], token = ARGV[3]}, nil)
