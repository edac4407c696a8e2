-- Acquire the lock if it is free, and draw its token. If another owner has it, enqueue
-- the request, if asked to.
--
-- KEYS: the lock, its token counter, the owner's tombstone, and the mark where the server
--       must not have forgotten anything (see arrive). For an owner that is not new, the
--       tombstone's name ends in a space and the attempt.
-- ARGV: value, TTL (ms), proposed token, how many more tokens to reserve below the one
--       drawn, the place (see place; empty for a request that does not wait), and with
--       the mark the arguments of gate: fingerprint of the membership, or of both in a
--       joint configuration; the server's run; '1' for a client that counts a quarantine
--       of its own
-- Returns {1, token, the clock (s, us), how many tokens below it are reserved}, or {0,
-- value of the holder, its PTTL}, with the mark also {..., 0, 0, the clock}, and for an
-- enqueued request what place adds, or {2} for an owner that was already released, or the
-- result of gate.
if #KEYS == 0 then return 0 end -- called only to load the script
local call = redis.call
-- Read everything in one call: calls are half of the cost. A place begins with digits,
-- the second of which is not 0 if the owner wants to wait even if nobody has the lock.
-- Such a request, and one of an owner that has asked before, must also read the queue;
-- others rarely need to.
local got, name, owner, place
local again, stands = string.byte(ARGV[5]) == 49, (string.byte(ARGV[5], 2) or 48) > 48
if again or stands then
  name, owner = '{' .. KEYS[1] .. '}:', string.sub(KEYS[3], #KEYS[1] + 9)
  place = name .. 'place:' .. owner
  got = call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4] or KEYS[1], name .. 'waits', place)
else
  got = call('MGET', unpack(KEYS))
end
local held, last = got[1], got[2]
local function refuse(held, left)
  left = left or call('PTTL', KEYS[1])
  if ARGV[5] == '' then
    if not KEYS[4] then
      return {0, held, left}
    end
    -- One of several servers also tells the clients that it refuses what its clock reads,
    -- so that they notice if it jumps.
    local time = call('TIME')
    return {0, held, left, 0, 0, time[1], time[2]}
  end
  if got[3] then
    return {2}
  end
  local waits, was = got[5], got[6]
  if not name then
    name, owner = '{' .. KEYS[1] .. '}:', string.sub(KEYS[3], #KEYS[1] + 9)
    place = name .. 'place:' .. owner
    local more = call('MGET', name .. 'waits', place)
    waits, was = more[1], more[2]
  end
  local time, now, ms
  -- include place
end
if held and held ~= ARGV[1] or not held and stands then
  return refuse(held)
end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
if KEYS[4] then
  -- include served
  if not serves(got[4], ARGV[6], ARGV[7], ARGV[8]) then
    -- include gate
    local refusal = gate(KEYS[4], ARGV[6], ARGV[7], ARGV[8], now)
    if refusal then
      return refusal
    end
  end
end
if again then
  -- include leave
  leave(owner, got[6])
end
-- For an owner that is not new, {L}:made names the attempt that made the grant, until
-- another attempt knows about it.
local attempt = string.match(KEYS[3], ' (.+)', #KEYS[1] + 9)
if held and attempt and call('MGET', '{' .. KEYS[1] .. '}:made')[1] ~= attempt then
  call('DEL', '{' .. KEYS[1] .. '}:made')
end
if held and last then -- the same request again gets the same grant, which is never shortened
  -- How many tokens below it were reserved is not known any more.
  if call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    call('PEXPIRE', KEYS[1], ARGV[2])
  end
  return {1, last, time[1], time[2], 0}
end
if got[3] then
  return {2}
end
local proposed, spare = ARGV[3], ARGV[4]
-- include draw
-- MGET returns no value for a key that is not a string, so the key must not exist.
if held then
  call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif not call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then
  -- include redisson
  local holder, left = redisson(KEYS[1])
  if holder then
    return refuse(holder, left)
  end
  return call('GET', KEYS[1])
end
local counted
if last then
  counted = redis.pcall('SET', KEYS[2], text, 'PX', LIFE)
else
  counted = redis.pcall('SET', KEYS[2], text, 'PX', LIFE, 'NX')
end
if not counted or counted.err then -- without a token there is no grant
  call('DEL', KEYS[1])
  return counted or call('GET', KEYS[2])
end
if attempt and not held then
  call('SET', '{' .. KEYS[1] .. '}:made', attempt, 'PX', LIFE)
end
return {1, text, time[1], time[2], reserved}
