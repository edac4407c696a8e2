-- Change the number of permits of a semaphore on one of several servers, in two phases.
--
-- KEYS: the lock, the mark (see arrive)
-- ARGV: seat for the first phase (see takeSeat) or set for the second one (see setNumber), who,
--       from, to, ttl, keep, and how the mark should begin (see gate)
-- Returns the result of the function, or that of gate. A lock that is no such lock is {6, empty, its
-- value}.
-- uses newRecord, readRecord, serves
local key, got = KEYS[1], call('MGET', KEYS[1], KEYS[2])
if not serves(got[2], ARGV[7]) then
  -- uses gate, try
  local refusal = try(gate, KEYS[2], ARGV[7])
  if refusal then
    return refusal
  end
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = (now - now % 1000) / 1000
local record = readRecord(got[1], ms)
if not record and (got[1] or call('PTTL', key) ~= -2) then
  return {6, '', got[1] or call('GET', key)}
end
record = record or newRecord(ARGV[3])
if ARGV[1] == 'seat' then
  -- uses takeSeat
  return takeSeat(key, record, ARGV[2], ARGV[3], ARGV[4], ARGV[5], ms)
end
-- uses setNumber
return setNumber(key, record, ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ms)
