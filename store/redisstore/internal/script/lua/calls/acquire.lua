-- Acquire the lock.
--
-- KEYS: the lock, its token counter, the owner's tombstone, and the mark where the server
--       must not have forgotten anything (see arrive)
-- ARGV: the request (see readRequest), value, proposed token, and with the mark how it should
--       begin (see gate)
-- Returns the result of acquire.
-- uses take
local key, counter, tombstone, mark, request, wanted = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[4]
local ttl = string.match(request, '^.(%d+)$')
local first, mode, again, place, got, text, time, refusal = ttl, '', '0', '', nil, nil, nil, nil
if not first then
  -- uses readRequest
  ttl, mode, again, place = readRequest(request)
end
-- Read everything in one call: calls are half of the cost. An owner that has asked before,
-- and one that wants a place in any case, need the queue as well; others rarely do.
if again == '1' or mode == '1' or mode == '2' then
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
  if not serves(text, wanted) then
    -- uses gate, try
    refusal = try(gate, mark, wanted) or false
  end
end
if first and not got[1] and not got[3] and not refusal then
  time = call('TIME')
  local proposed, now, last = ARGV[3], time[1] * 1000000 + time[2], got[2] and got[2] + 0
  local token = proposed + 0
  -- Nearly every proposal is drawn as it is (see draw). This leaves the definition of acquire out.
  if token >= now and token <= now + LEAD and (not last or token > last) then
    local said = take(key, counter, last, ARGV[2], ttl, proposed, token, true)
    if said == true then
      return proposed .. ' ' .. time[1] .. ' ' .. time[2]
    elseif said then
      return said
    end
  end
end
-- uses acquire
return acquire(key, counter, tombstone, got, ARGV[2], ttl, ARGV[3], mode, again, place, time, refusal)
