-- confirm raises the token counter to at least token, if the lock is ours. The argument held is
-- the lock's value. Returns {1, counter} or what foreign says.
local function confirm(key, counter, held, value, token)
  if held ~= value then
    -- uses foreign
    return foreign(key, held)
  end
  local last = call('GET', counter)
  if not last or tonumber(last) < tonumber(token) then
    last = token
    call('SET', counter, last, 'PX', LIFE)
  end
  return {1, last}
end
