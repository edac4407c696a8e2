-- Renew several leases.
--
-- KEYS: the locks, their token counters, and the mark (see arrive) of one of several
--       servers
-- ARGV: the value of each lock, TTL (ms), fingerprint of the membership
-- Returns the result of extend.
-- uses extend
local n = math.floor(#KEYS / 2)
-- MGET returns no value for a key that is not a string, and other leases must not fail.
local held, mark, refusal = n == 1 and {call('GET', KEYS[1])} or call('MGET', unpack(KEYS, 1, n)), KEYS[2 * n + 1], nil
if mark then
  -- uses checkMembership
  local text = redis.pcall('GET', mark)
  refusal = type(text) == 'table' and text or checkMembership(text, ARGV[n + 2])
end
return extend({n = n, keys = KEYS, first = 1, args = ARGV, before = 0, got = held, read = 0, ttl = ARGV[n + 1]}, refusal, nil)
