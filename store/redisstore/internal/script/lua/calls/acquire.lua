-- Acquire the lock.
--
-- KEYS: the lock, its token counter, the owner's tombstone, and the mark where the server
--       must not have forgotten anything (see arrive)
-- ARGV: the request (see readRequest), value, proposed token, and with the mark how it should
--       begin (see gate)
-- Returns the result of acquire.
-- uses take
local key, counter, tombstone, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local ttl = string.match(ARGV[1], '^.(%d+)$') -- of a new owner that does not wait
local wanted, got, text, time, refusal = nil, nil, nil, nil, nil
if not ttl then
  -- uses readRequest
  wanted = readRequest(KEYS, 1, ARGV, 1)
end
-- Read everything in one call: calls are half of the cost. An owner that has asked before,
-- and one that wants a place in any case, need the queue as well; others rarely do.
if wanted and (wanted.again == '1' or wanted.mode == '1' or wanted.mode == '2') then
  local name = '{' .. key .. '}:'
  got = call('MGET', key, counter, tombstone, name .. 'waits', name .. 'place:' .. string.sub(tombstone, #key + 9), mark or key)
  text = got[6]
elseif mark then
  got = call('MGET', key, counter, tombstone, mark)
  text, got[4] = got[4], nil
else
  got = call('MGET', key, counter, tombstone)
end
if mark then
  -- uses serves
  refusal = false
  if not serves(text, ARGV[4]) then
    -- uses gate, try
    refusal = try(gate, mark, ARGV[4]) or false
  end
end
if ttl and not got[1] and not got[3] and not refusal then
  time = call('TIME')
  local proposed, now, last = ARGV[3], time[1] * 1000000 + time[2], got[2] and got[2] + 0
  local token = proposed + 0
  -- Nearly every proposal is drawn as it is (see draw). This leaves the definition of acquire out.
  if token >= now and token <= now + LEAD and (not last or token > last) then
    local said = take(key, counter, last, ARGV[2], ttl, proposed)
    if said == true then
      return proposed .. ' ' .. time[1] .. ' ' .. time[2]
    elseif said then
      return said
    end
  end
end
-- uses acquire, readRequest
return acquire(wanted or readRequest(KEYS, 1, ARGV, 1), got, time, refusal)
