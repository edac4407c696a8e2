-- Change a lock that several can hold while it is held.
--
-- KEYS: the lock, its token counter, a key that is never written (see WholeEnd in keys.go), and
--       the mark where the server must not have forgotten anything (see arrive), for a downgrade
--       and for break on one of several servers
-- ARGV: what to do, and its arguments:
--   downgrade (see there): owner, TTL (ms), proposed
--   resize (see there): from, to
--   break (see breakHold): owner, token, atOnce, proposed, the note's beginning, which names
--     the lease, the rest of the note, and how long it is kept after the grant (ms)
--   part (see breakPart): the same, and then made, life
-- and with the mark how it should begin (see gate).
-- Returns the result of the function, or what gate says of the membership. A lock that nobody has is not in use; one that is no
-- such lock is {6, empty, its value}.
-- uses newStep, readRecord
local key, got, refusal = KEYS[1], call('MGET', KEYS[1], KEYS[2], KEYS[4] or KEYS[1]), nil
local mark, print = KEYS[4] and got[3] or nil, nil
if KEYS[4] then
  -- uses printOf, serves
  local wanted = ARGV[#ARGV]
  print = printOf(wanted)
  if not serves(mark, wanted) then
    -- uses gate, try
    refusal = try(gate, KEYS[4], wanted)
    if refusal and refusal[1] ~= 3 then -- no quarantine: as for a renewal
      return refusal
    end
  end
end
local does = ARGV[1]
local step = newStep(call('TIME'), does == 'downgrade' and ARGV[4] or ARGV[5], mark, print, refusal)
local record, h = readRecord(key, got[1], step.ms, ARGV[2])
if not record and does ~= 'part' and (got[1] or call('PTTL', key) ~= -2) then
  return {6, '', got[1] or call('GET', key)}
end
if not record and does ~= 'part' then
  -- uses newRecord
  record = newRecord(key, 's1', step.ms)
end
if does == 'downgrade' then
  -- uses downgrade
  return downgrade(KEYS[2], record, h, ARGV[3], got[2], step)
elseif does == 'resize' then
  -- uses resize
  return resize(record, ARGV[2], ARGV[3])
end
local asked = {owner = ARGV[2], token = ARGV[3], atOnce = ARGV[4], begins = ARGV[6], note = ARGV[7], keep = ARGV[8], made = ARGV[9], life = ARGV[10]}
-- uses breakHold
if does == 'part' then
  -- uses breakPart
  return breakPart(key, record, h, asked, got[2], step)
end
return breakHold(record, h, asked, got[2], step)
