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
-- uses readRecord
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = (now - now % 1000) / 1000
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
local record, h = readRecord(key, got[1], ms, ARGV[2])
if not record and ARGV[1] ~= 'part' and (got[1] or call('PTTL', key) ~= -2) then
  return {6, '', got[1] or call('GET', key)}
end
if not record and ARGV[1] ~= 'part' then
  -- uses newRecord
  record = newRecord(key, 's1', ms)
end
if ARGV[1] == 'downgrade' then
  -- uses downgrade
  return downgrade(key, KEYS[2], record, h, ARGV[3], got[2], ARGV[4], time, ms, refusal, mark, print)
elseif ARGV[1] == 'resize' then
  -- uses resize
  return resize(record, ARGV[2], ARGV[3])
end
-- uses breakHold
if ARGV[1] == 'part' then
  -- uses breakPart
  return breakPart(key, record, h, ARGV[2], ARGV[3], ARGV[4], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], got[2], ARGV[5], time, ms, refusal, mark, print)
end
return breakHold(key, record, h, ARGV[2], ARGV[3], ARGV[4], ARGV[6], ARGV[7], ARGV[8], got[2], ARGV[5], time, ms, nil, nil, '')
