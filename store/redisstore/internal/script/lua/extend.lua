-- extend renews several leases. They cost little more than one: the mark and the clock are
-- read once. The locks are n of the keys, from first on, and their token counters are the
-- next n. Their values should be those of the arguments from the one after before on. The
-- values that they have are got, likewise from the one after read on.
-- ttl: how long the leases last from now at least (ms)
-- refusal: why the mark does not let the client renew its leases (see checkMembership), an
--     error reply if it cannot be read, and nil if it does
-- time: the clock, nil if it was not read
--
-- Returns {1, the clock (s, us)}, what foreign says, or the refusal. For several locks that
-- is the common result, or {the common result, and the number and the result of each lock
-- with another one}.
-- uses renew
local function extend(n, keys, first, args, before, got, read, ttl, refusal, time)
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
        renew(keys[first + i - 1], keys[first + n + i - 1], ttl)
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
