-- End the grant of an owner of a lock that several can hold.
--
-- KEYS: the lock, its token counter, the owner's tombstone, and the mark where the server must
--       not have forgotten anything (see arrive)
-- ARGV: life, always, undo, proposed, to (see release), and with the mark the arguments of gate
-- Returns the result of endHold.
-- uses endHold
local key, tomb, mark, refusal = KEYS[1], KEYS[3], nil, nil
local name = '{' .. key .. '}:'
local got = call('MGET', key, KEYS[2], name .. 'waits', name .. 'place:' .. string.match(tomb, '^[^ ]+', #key + 9), KEYS[4] or key)
if KEYS[4] then
  mark = got[5]
  -- uses gate, serves
  refusal = not serves(mark, ARGV[6], ARGV[7], ARGV[8]) and select(2, pcall(gate, KEYS[4], ARGV[6], ARGV[7], ARGV[8]))
end
return endHold(key, tomb, got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], call('TIME'), mark, ARGV[6], refusal)
