-- Take a lock that several can hold.
--
-- KEYS: the lock, its token counter, the owner's tombstone, {L}:waits, and the mark where the
--       server must not have forgotten anything (see arrive)
-- ARGV: kind, weight, value, TTL (ms), proposed token, mode, again, slots, place (see admit),
--       and with the mark how it should begin (see gate)
--   slots is empty on a single server, where a grant has one slot. On one of several, each permit
--   of a semaphore is numbered: slots is then - for any, or those that the owner wants, as
--   ascending numbers with commas between them, after a = if it must have them. The slots of a
--   read-write lock do not matter there, and it is -.
-- Returns the result of admit.
-- uses admitFirst
local key, mark, refusal = KEYS[1], KEYS[5], nil
local got = call('MGET', unpack(KEYS))
local text = got[5]
if mark then
  -- uses serves
  if not serves(text, ARGV[10]) then
    -- uses gate, try
    refusal = try(gate, mark, ARGV[10])
  end
end
local said = not refusal and admitFirst(key, KEYS[2], KEYS[3], got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], nil)
if said then
  return said
end
-- uses admit, printOf
return admit(key, KEYS[2], KEYS[3], got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], nil, refusal, text, printOf(ARGV[10]))
