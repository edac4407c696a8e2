-- extend renews several leases. They cost little more than one: the mark and the clock are
-- read once.
--
-- leases: n, how many; keys and first, where the locks begin, which their token counters follow;
--     args and before, after which the values begin that the locks should have; got and read,
--     after which those begin that they have; and ttl, how long the leases last from now at
--     least (ms)
-- refusal: why the mark does not let the client renew its leases (see checkMembership), an
--     error reply if it cannot be read, and nil if it does
-- time: the clock, nil if it was not read
--
-- Returns {1, the clock (s, us)}, what foreign says, or the refusal. For several locks that
-- is the common result, or {the common result, and the number and the result of each lock
-- with another one}.
-- uses renew
local function extend(leases, refusal, time)
  local n, keys, first, args, before, got, read = leases.n, leases.keys, leases.first, leases.args, leases.before, leases.got, leases.read
  local others
  for i = 1, n do
    if got[read + i] ~= args[before + i] then
      -- uses foreign
      local said = foreign(keys[first + i - 1], got[read + i])
      if n == 1 then
        return said
      end
      others = others or {0}
      others[#others + 1] = i
      others[#others + 1] = said
    end
  end
  if refusal and refusal.err then
    return refusal
  elseif not refusal then
    for i = 1, n do
      if got[read + i] == args[before + i] then
        renew(keys[first + i - 1], keys[first + n + i - 1], leases.ttl)
      end
    end
    time = time or call('TIME')
  end
  local all = refusal or {1, time[1], time[2]}
  if others then
    others[1] = all
  end
  return others or all
end
