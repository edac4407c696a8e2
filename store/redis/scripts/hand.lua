-- Give the lock, which is nobody's any more, to the first in line who can be told, or
-- could not be told of anything from the start (see place): in this very step, so that
-- nothing comes between. Others are removed from the line: their processes are gone. In
-- quarantine nothing is granted.
-- Who it is given to is told, by a message to its channel: "handed", owner, token,
-- stamp, the clock (s, us). Who only wants to hear that the lock is free: "free",
-- owner. All that is written is written before.
-- Who releases it has no place from then on. Returns whether the key of the lock is as
-- it is to be: as long as nobody is given the lock it is left alone.
local function hand(name, from, proposed, to, mark, quarantine, prints)
  local call = redis.call
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  if mark then
    -- include gate
    if gate(mark, quarantine, prints, now) then
      -- include leave
      leave(from)
      return
    end
  end
  while true do
    local owner = to
    if to == '' then
      local entry = call('LPOP', name .. 'line')
      if not entry then
        call('DEL', name .. 'waits')
        return
      end
      owner = string.sub(entry, 18)
    end
    local got = call('MGET', name .. 'place:' .. owner, name .. 'token', name .. 'place:' .. from)
    local place, last = got[1], got[2]
    if got[3] then
      -- include leave
      leave(from)
      place = owner ~= from and place
    end
    if to ~= '' then
      if not place then
        return
      end
      call('LREM', name .. 'line', '1', string.sub(place, 15, 30) .. ' ' .. owner)
      to = ''
    end
    if place then
      call('DEL', name .. 'place:' .. owner)
      local stamp, spare, flags, channel, at = string.match(place, '^(%d+) (%d+) (%S+) (%S+) ()', 32)
      local listening = at and string.byte(place) == 48 and redis.pcall('PUBSUB', 'NUMSUB', channel)
      if at and not (listening and listening[2] == 0) then
        local message
        if flags ~= '-' and (string.find(flags, 'b', 1, true) or not mark and string.find(flags, 'g', 1, true)) then
          call('DEL', KEYS[1])
          message = 'free ' .. owner
        else
          -- include draw
          -- MGET does not see what is no string: what was not there must not be there.
          if last then
            call('SET', name .. 'token', text, 'PX', LIFE)
          elseif not call('SET', name .. 'token', text, 'PX', LIFE, 'NX') then
            return
          end
          local left = string.sub(place, 2, 14) - (now - now % 1000) / 1000
          call('SET', KEYS[1], string.sub(place, at), 'PX', math.max(1, left))
          message = 'handed ' .. owner .. ' ' .. text .. ' ' .. stamp .. ' ' .. time[1] .. ' ' .. time[2]
        end
        redis.pcall('PUBLISH', channel, message)
        return true
      end
    end
  end
end
