-- Give the lock, which is free, to the first in line who can be told, or could not be
-- told of anything from the start (see place): in this very step, so that nothing
-- comes between. Others are removed from the line: their processes are gone. In
-- quarantine nothing is granted.
-- Who it is given to is told, by a message to its channel: "handed", owner, token,
-- stamp, the clock (s, us). Who only wants to hear that the lock is free: "free",
-- owner. All that is written is written before.
local function hand(line, proposed, mark, quarantine, prints)
  local call, name = redis.call, '{' .. KEYS[1] .. '}:'
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  if mark then
    -- include gate
    if gate(mark, quarantine, prints, now) then
      return
    end
  end
  local lasts = math.max(1, call('PTTL', name .. 'line'))
  local at, owner, message, channel = 1, nil, nil, nil
  while not message do
    local _, to
    _, to, owner = string.find(line, '^%d+ (%S+)\n', at)
    if not to then
      at = #line + 1
      break
    end
    at = to + 1
    local place = call('GET', name .. 'place:' .. owner)
    local left = place and call('PTTL', name .. 'place:' .. owner) or 0
    local deaf, stamp, spare, flags, to, value = string.match(place or '', '^(%d) (%d+) (%d+) (%S+) (%S+) (.+)$')
    local listening = left > 0 and value and deaf == '0' and redis.pcall('PUBSUB', 'NUMSUB', to)
    if place then
      call('DEL', name .. 'place:' .. owner)
    end
    if left > 0 and value and not (listening and listening[2] == 0) then
      channel = to
      if string.find(flags, 'b', 1, true) or not mark and string.find(flags, 'g', 1, true) then
        message = 'free ' .. owner
      else
        local last = call('GET', name .. 'token')
        -- include draw
        call('SET', name .. 'token', text, 'PX', LIFE)
        call('SET', KEYS[1], value, 'PX', left)
        message = table.concat({'handed', owner, text, stamp, time[1], time[2]}, ' ')
      end
    end
  end
  line = string.sub(line, at)
  if line == '' then
    call('DEL', name .. 'line')
  else
    call('SET', name .. 'line', line, 'PX', lasts)
  end
  if message then
    redis.pcall('PUBLISH', channel, message)
  end
end
