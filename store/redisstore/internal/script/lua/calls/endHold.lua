-- End the grant of an owner of a lock that several can hold.
--
-- KEYS: the lock, the owner's tombstone, {L}:waits, and the mark where the server must not have
--       forgotten anything (see arrive)
-- ARGV: life, always, undo, proposed, to (see release), and with the mark how it should begin
--       (see gate)
-- Returns the result of endHold.
-- uses endOnly
local key, mark = KEYS[1], KEYS[4]
local got = mark and call('MGET', key, KEYS[3], mark) or call('MGET', key, KEYS[3])
if endOnly(key, KEYS[2], got[1], got[2], ARGV[1], ARGV[2]) then
  return {1}
end
local text, print, refusal = got[3], nil, nil
if mark then
  -- uses gate, printOf, serves
  refusal = not serves(text, ARGV[6]) and select(2, pcall(gate, mark, ARGV[6]))
  print = printOf(ARGV[6])
end
-- uses endHold, newStep
local ending = {life = ARGV[1], always = ARGV[2], undo = ARGV[3], to = ARGV[5]}
return endHold(key, KEYS[2], got[1], got[2], ending, newStep(call('TIME'), ARGV[4], text, print, refusal))
