-- Take a lock that several can hold.
--
-- KEYS: as in acquire
-- ARGV: kind, weight, value, TTL (ms), proposed token, spare, mode, again, place (see admit),
--       and with the mark the arguments of gate
-- Returns the result of admit.
-- uses admit
local key, tomb, mark, refusal = KEYS[1], KEYS[3], nil, nil
local name = '{' .. key .. '}:'
local got = call('MGET', key, KEYS[2], tomb, name .. 'waits', name .. 'place:' .. string.match(ARGV[3], '^[^ ]+'), KEYS[4] or key)
if KEYS[4] then
  mark = got[6]
  -- uses serves
  if not serves(mark, ARGV[10], ARGV[11], ARGV[12]) then
    -- uses gate, try
    refusal = try(gate, KEYS[4], ARGV[10], ARGV[11], ARGV[12])
  end
end
return admit(key, KEYS[2], tomb, got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], nil, refusal, mark, ARGV[10])
