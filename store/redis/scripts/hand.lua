-- Give the lock, which is nobody's any more, to the first in line who hears of it, or
-- could not be told of anything from the start (see place): in this very step, so that
-- nothing comes between. Others are removed from the line: their processes are gone. In
-- quarantine nothing is granted.
-- Who it is given to is told, by a message to its channel: "handed", owner, token,
-- stamp, the clock (s, us). Who only wants to hear that the lock is free: "free",
-- owner. All that is written is written before; what is said to nobody is as good as
-- never written, the counter as it was. Who listens to all channels by a pattern seems
-- to be there for everybody: then the place of a dead process has to end by its TTL.
-- Who releases it has no place from then on. Returns whether the key of the lock is as
-- it is to be.
local function hand(to)
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  if KEYS[3] then
    local mark = got[3]
    -- include served
    if not (served and tonumber(string.sub(mark, 1, 16)) <= now) then
      -- include gate
      if gate(KEYS[3], ARGV[6], ARGV[7], now) then
        -- include leave
        leave(from)
        return
      end
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
    local found = call('MGET', name .. 'place:' .. owner, name .. 'token', name .. 'place:' .. from)
    local place, last = found[1], found[2]
    if found[3] then
      -- include leave
      leave(from, found[3])
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
      -- A pattern that does all of this takes twice as long.
      local a = string.find(place, ' ', 32, true)
      local b = a and string.find(place, ' ', a + 1, true)
      local c = b and string.find(place, ' ', b + 1, true)
      local d = c and string.find(place, ' ', c + 1, true)
      local spare = d and tonumber(string.sub(place, a + 1, b - 1))
      if spare then
        local stamp, flags, channel = string.sub(place, 32, a - 1), string.sub(place, b + 1, c - 1), string.sub(place, c + 1, d - 1)
        local message, counts
        if flags ~= '-' and (string.find(flags, 'b', 1, true) or not KEYS[3] and string.find(flags, 'g', 1, true)) then
          call('DEL', KEYS[1])
          message = 'free ' .. owner
        else
          local proposed = ARGV[4]
          -- include draw
          -- MGET does not see what is no string: what was not there must not be there.
          if last then
            call('SET', name .. 'token', text, 'PX', LIFE)
          elseif not call('SET', name .. 'token', text, 'PX', LIFE, 'NX') then
            return
          end
          local left = string.sub(place, 2, 14) - (now - now % 1000) / 1000
          call('SET', KEYS[1], string.sub(place, d + 1), 'PX', math.max(1, left))
          message, counts = 'handed ' .. owner .. ' ' .. text .. ' ' .. stamp .. ' ' .. time[1] .. ' ' .. time[2], true
        end
        if redis.pcall('PUBLISH', channel, message) ~= 0 or string.byte(place) ~= 48 then
          return true
        end
        if counts and last then
          call('SET', name .. 'token', last, 'PX', LIFE)
        elseif counts then
          call('DEL', name .. 'token')
        end
      end
    end
  end
end
