-- Take a lock that several can hold.
--
-- KEYS: as in acquire
-- ARGV: kind, weight, value, TTL (ms), proposed token, spare, mode, again, slots, place (see
--       admit), and with the mark the arguments of gate
--   slots is empty on a single server, where a grant has one slot. On one of several, each permit
--   of a semaphore is numbered: slots is then - for any, or those that the owner wants, as
--   ascending numbers with commas between them, after a = if it must have them. The slots of a
--   read-write lock do not matter there, and it is -.
-- Returns the result of admit.
-- uses admit
local key, tomb, mark, refusal = KEYS[1], KEYS[3], nil, nil
local name = '{' .. key .. '}:'
local got = call('MGET', key, KEYS[2], tomb, name .. 'waits', name .. 'place:' .. string.match(ARGV[3], '^[^ ]+'), KEYS[4] or key)
if KEYS[4] then
  mark = got[6]
  -- uses serves
  if not serves(mark, ARGV[11], ARGV[12], ARGV[13]) then
    -- uses gate, try
    refusal = try(gate, KEYS[4], ARGV[11], ARGV[12], ARGV[13])
  end
end
return admit(key, KEYS[2], tomb, got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], nil, refusal, mark, ARGV[11])
