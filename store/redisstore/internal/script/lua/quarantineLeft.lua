-- quarantineLeft returns how long the mark at key keeps the server in quarantine (us), and
-- why. The key may be nil. A server without a mark may have been emptied: it begins a quarantine
-- when the next client wants a lock.
-- uses readMark
local function quarantineLeft(key)
  if not key then
    return '0', ''
  end
  local time = call('TIME')
  local mark, version = readMark(call('GET', key))
  if not mark and not version then
    return '1', 'empty'
  elseif not mark or mark.state ~= 'shut' then
    return '0', ''
  end
  return string.format('%.0f', math.max(1, mark.opens - (time[1] * 1000000 + time[2]))), mark.why
end
