-- confirm raises the token counter to at least token, if the lock is ours. If least is not
-- empty, it raises the counter to least, and further, up to token, only as far as that does
-- not lead the clock by more than LEAD. The argument held is the lock's value.
-- Returns {1, counter, 1 if there are waiters or 0} or what foreign says.
local function confirm(key, counter, held, value, token, least)
  if held ~= value then
    -- uses foreign
    return foreign(key, held)
  end
  if least ~= '' then
    local time = call('TIME')
    local most = math.max(tonumber(least), time[1] * 1000000 + time[2] + LEAD)
    if tonumber(token) > most then
      token = string.format('%.0f', most)
    end
  end
  local last = call('GET', counter)
  if not last or tonumber(last) < tonumber(token) then
    last = token
    call('SET', counter, last, 'PX', LIFE)
  end
  local name = '{' .. key .. '}:'
  local queue = call('MGET', name .. 'waits')[1] and redis.pcall('LINDEX', name .. 'line', '0')
  return {1, last, type(queue) == 'string' and 1 or 0}
end
