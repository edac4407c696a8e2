-- Take a lock that several can hold.
--
-- KEYS: the lock, its token counter, the owner's tombstone, {L}:waits, and the mark where the
--       server must not have forgotten anything (see arrive)
-- ARGV: kind, weight, value, TTL (ms), proposed token, mode, again, slots, place (see admit),
--       and with the mark how it should begin (see gate)
--   again is 1 for an owner that has asked before, 2 if it has not but the grant needs all keys of
--   the record (see readRecord), or 0.
--   slots is empty on a single server, where a grant has one slot. On one of several, each permit
--   of a semaphore is numbered: slots is then - for any, or those that the owner wants, as
--   ascending numbers with commas between them, after a = if it must have them. The slots of a
--   read-write lock do not matter there, and it is -.
-- Returns the result of admit.
-- uses admitFirst, readWanted
local key, mark, refusal = KEYS[1], KEYS[5], nil
local got, wanted = call('MGET', unpack(KEYS)), readWanted(key, KEYS[3], ARGV, 0)
local text = got[5]
if mark then
  -- uses serves
  if not serves(text, ARGV[10]) then
    -- uses gate, try
    refusal = try(gate, mark, ARGV[10])
  end
end
local said = not refusal and admitFirst(wanted, got, nil)
if said then
  return said
end
-- uses admit, newStep, printOf
return admit(wanted, got, newStep(call('TIME'), wanted.proposed, text, printOf(ARGV[10]), refusal))
