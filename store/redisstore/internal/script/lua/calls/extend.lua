-- Renew several leases. They cost little more than one: the mark and the clock are read
-- once.
--
-- KEYS: the locks, their token counters, and the mark (see arrive) of one of several
--       servers
-- ARGV: the value of each lock, TTL (ms), fingerprint of the membership
-- Returns {1, the clock (s, us)}, what foreign says, or what belongs says. For several locks
-- that is the common result, or {the common result, and the number and the result of each
-- lock with another one}.
-- uses renew
local n = math.floor(#KEYS / 2)
local mark, ttl, others, all = KEYS[2 * n + 1], ARGV[n + 1], nil, nil
local held = n == 1 and {call('GET', KEYS[1])} or call('MGET', unpack(KEYS, 1, n))
for i = 1, n do
  if held[i] ~= ARGV[i] then
    -- uses foreign
    local said = foreign(KEYS[i], held[i])
    if n == 1 then
      return said
    end
    others = others or {0}
    others[#others + 1] = i
    others[#others + 1] = said
  end
end
if mark and not (others and #others > 2 * n) then
  -- uses belongs
  all = belongs(call('GET', mark), ARGV[n + 2])
end
if not all then
  for i = 1, n do
    if held[i] == ARGV[i] then
      renew(KEYS[i], KEYS[n + i], ttl)
    end
  end
  local time = call('TIME')
  all = {1, time[1], time[2]}
end
if others then
  others[1] = all
end
return others or all
