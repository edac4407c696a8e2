-- Extend each of our leases to at least the TTL from now. Never shorten or create one.
-- Several leases cost little more than one: the mark and the clock are read once.
--
-- KEYS: the locks, their token counters, and the mark (see arrive) of one of several
--       servers
-- ARGV: the value of each lock, TTL (ms), how long the counters are kept (ms),
--       fingerprint of the membership
-- Returns {1, the clock (s, us)}, {0, value of the holder, its PTTL}, {4, the server's
-- membership}, or {5, the version of a mark that this client cannot read}. For several
-- locks that is the common result, or {the common result, and the number and the result
-- of each lock with another one}.
if #KEYS == 0 then return 0 end -- called only to load the script
local call, n = redis.call, math.floor(#KEYS / 2)
local held, other, strangers, all
if n == 1 then
  held = {call('GET', KEYS[1])}
else
  held = call('MGET', unpack(KEYS, 1, n))
end
for i = 1, n do
  if held[i] ~= ARGV[i] then
    -- MGET returns no value for a key that is not a string, and other leases must not
    -- fail.
    local said = n > 1 and not held[i] and redis.pcall('GET', KEYS[i])
    if type(said) ~= 'table' then
      said = {0, held[i] or '', call('PTTL', KEYS[i])}
    end
    if n == 1 then
      return said
    end
    other = other or {0}
    other[#other + 1] = i
    other[#other + 1] = said
  end
end
local mark = KEYS[2 * n + 1]
if mark and not (other and #other > 2 * n) then
  local print = ARGV[n + 3]
  local text = call('GET', mark)
  local got, list = string.match(text or '', '^2 %S+ (%S+) .* (%S+)$')
  if text and not got then
    -- include mark
    local _, version = readMark(text)
    all = {5, version}
  end
  if got and got ~= print and got ~= '-' and got ~= string.sub(print, 1, 12) and got ~= string.sub(print, 14) then
    all = {4, list}
  end
end
if not all then
  local ttl, life = ARGV[n + 1], ARGV[n + 2]
  local least = tonumber(ttl)
  for i = 1, n do
    if held[i] == ARGV[i] then
      if call('PTTL', KEYS[i]) < least then
        call('PEXPIRE', KEYS[i], ttl)
      end
      call('PEXPIRE', KEYS[n + i], life)
    end
  end
  local time = call('TIME')
  all = {1, time[1], time[2]}
end
if other then
  other[1] = all
end
return other or all
