-- Give the lock to us again.
--
-- KEYS: the lock, the owner's tombstone, the mark (see arrive)
-- ARGV: value, TTL (ms), how the mark should begin (see gate)
-- Returns the result of heal.
-- uses heal
local got = call('MGET', KEYS[1], KEYS[2])
return heal(KEYS[1], KEYS[2], got, {value = ARGV[1], ttl = ARGV[2]}, KEYS[3], ARGV[3])
