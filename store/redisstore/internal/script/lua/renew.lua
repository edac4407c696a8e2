-- renew extends a lease that is ours to at least the TTL (ms) from now, and keeps its token
-- counter. It never shortens or creates one.
local function renew(key, counter, ttl)
  if call('PTTL', key) < tonumber(ttl) then
    call('PEXPIRE', key, ttl)
  end
  call('PEXPIRE', counter, LIFE)
end
