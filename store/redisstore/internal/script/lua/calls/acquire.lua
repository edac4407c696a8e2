-- Acquire the lock.
--
-- KEYS: the lock, its token counter, the owner's tombstone, and the mark where the server
--       must not have forgotten anything (see arrive)
-- ARGV: value, TTL (ms), proposed token, spare, mode, again, place (see acquire), and with
--       the mark the arguments of gate
-- Returns the result of acquire.
-- uses acquire
local key, tombstone, mode, again = KEYS[1], KEYS[3], ARGV[5], ARGV[6]
local got, mark, refusal
-- Read everything in one call: calls are half of the cost. An owner that has asked before,
-- and one that wants a place in any case, need the queue as well; others rarely do.
if again == '1' or mode == '1' or mode == '2' then
  local name = '{' .. key .. '}:'
  got = call('MGET', key, KEYS[2], tombstone, name .. 'waits', name .. 'place:' .. string.sub(tombstone, #key + 9), KEYS[4] or key)
  mark = got[6]
else
  got = call('MGET', unpack(KEYS))
  mark, got[4] = got[4], nil
end
if KEYS[4] then
  -- uses serves
  refusal = false
  if not serves(mark, ARGV[8], ARGV[9], ARGV[10]) then
    -- uses gate, try
    refusal = try(gate, KEYS[4], ARGV[8], ARGV[9], ARGV[10]) or false
  end
end
return acquire(key, KEYS[2], tombstone, got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], mode, again, ARGV[7], nil, refusal)
