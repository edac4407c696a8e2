-- shut returns how long a server still grants nothing (us) and why, by its mark (see
-- arrive). A server without one grants.
local function shut(mark)
  local opens, why = string.match(mark and redis.call('GET', mark) or '', '^(%d+) %S+ %S+ (%S+)')
  if not opens then
    return '0', ''
  end
  local time = redis.call('TIME')
  return string.format('%.0f', math.max(0, opens - (time[1] * 1000000 + time[2]))), why
end
