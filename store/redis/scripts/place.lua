-- Somebody else has the lock, or the next one is to be another: the request is kept
-- until it is its turn.
--
-- A place is the key {L}:place:OWNER, which lasts for the TTL unless it is refreshed:
--   whether nobody can be told (1 or 0), stamp, spare, flags (b: tell it only that
--   the lock is free; g: it must not be granted without a look at the mark; or -),
--   channel, and then the value that its lock will have
-- The line {L}:line has an entry "ticket owner\n" for each, in the order of tickets,
-- which have 16 digits. It lasts as long as the longest place. Entries whose place is
-- gone are removed when somebody comes across them.
-- ARGV[5]: 1 or 0 for whether the owner has asked before, and for whether it only
--          wants the place, its rank (16 digits), and stamp, spare, flags and channel
-- Returns, besides the holder if there is one, the position (1 is the next to come) and whether
-- nobody can be told (1 or 0), and the clock (s, us).
if not held and call('PTTL', KEYS[1]) ~= -2 then
  return call('GET', KEYS[1]) -- MGET does not see what is no string
end
local name = '{' .. KEYS[1] .. '}:'
local owner = string.match(ARGV[1], '^[^ ]+')
local again, rank, rest, channel = string.match(ARGV[5], '^(%d)%d (%d+) (%d+ %d+ %S+ (%S+))$')
local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
local deaf = (listening.err or listening[2] == 0) and 1 or 0
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local line = call('GET', name .. 'line') or ''
local before = line
local function without(o)
  local from, to = string.find(line, ' ' .. o .. '\n', 1, true)
  if from then
    line = string.sub(line, 1, from - 17) .. string.sub(line, to + 1)
  end
end
local place, mine = name .. 'place:' .. owner, ' ' .. owner .. '\n'
local at = string.find(line, mine, 1, true)
local ttl, left = tonumber(ARGV[2]), at and call('PTTL', place) or -2
-- Those who come look at the last few, and those who come again, or one of 16, at
-- more of those before them.
local upto = left ~= -2 and at or #line
local look, from = 160, 1
if again == '1' or now % 16 == 0 then
  look = 4096
end
if upto > look then
  from = (string.find(line, '\n', upto - look, true) or #line) + 1
end
local owners, places = {}, {}
for o in string.gmatch(string.sub(line, from, upto), ' (%S+)\n') do
  owners[#owners + 1] = o
  places[#places + 1] = name .. 'place:' .. o
end
if #places > 0 then
  for i, alive in ipairs(call('MGET', unpack(places))) do
    if not alive then
      without(owners[i])
    end
  end
end
local entry = rank .. mine
if left ~= -2 then
  at = string.find(line, mine, 1, true) - 16
else
  without(owner)
  -- What a newcomer says of the time is believed near this clock only. Who asks
  -- again keeps the rank it had, wherever it stood before its place was lost.
  if again == '0' then
    rank = string.format('%016.0f', math.max(now - LEAD, math.min(tonumber(rank), now + LEAD)))
    entry = rank .. mine
  end
  at = #line + 1
  -- Most owners are as long as this one, and then that is the last ticket.
  if (#line == #entry or string.byte(line, -#entry - 1) == 10) and string.sub(line, -#entry, -#entry + 15) <= rank
    and string.sub(line, 1, 16) <= rank then -- the first may have been put there, see release
    line = line .. entry
  else
    at = 1
    for ticket, after in string.gmatch(line, '(%d+) %S+\n()') do
      if ticket > rank then
        break
      end
      at = after
    end
    line = string.sub(line, 1, at - 1) .. entry .. string.sub(line, at)
  end
end
local lasts = math.max(ttl, call('PTTL', name .. 'line'))
if line ~= before then
  call('SET', name .. 'line', line, 'PX', lasts)
elseif lasts == ttl then
  call('PEXPIRE', name .. 'line', lasts)
end
call('SET', place, deaf .. ' ' .. rest .. ' ' .. ARGV[1], 'PX', math.max(ttl, left))
local position = 1 + (at - 1) / #entry
if position % 1 ~= 0 then
  position = 1
  for _ in string.gmatch(string.sub(line, 1, at - 1), '\n') do
    position = position + 1
  end
end
return {0, held or '', call('PTTL', KEYS[1]), position, deaf, time[1], time[2]}
