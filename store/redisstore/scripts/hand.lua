-- Give the lock, which is nobody's any more, to the first in line who hears of it, or
-- could not be told of anything from the start (see place): in this very step, so that
-- nothing comes between. Others are removed from the line: their processes are gone, or
-- the mark names a list that is not theirs. In quarantine nothing is granted.
-- Who it is given to is told, by a message to its channel: "handed", owner, token,
-- stamp, the clock (s, us), and, if that is not all that it asked for, how many tokens
-- below that one are reserved for it. Who only wants to hear that the lock is free: "free",
-- owner. All that is written is written before; what is said to nobody is as good as
-- never written, the counter as it was. Who listens to all channels by a pattern seems
-- to be there for everybody: then the place of a dead process has to end by its TTL.
-- Who releases it has no place from then on. Returns whether the key of the lock is as
-- it is to be, as held and left say.
local function hand(to, print, run, counting)
  local sub, find, tokens = string.sub, string.find, name .. 'token'
  time = call('TIME')
  now = time[1] * 1000000 + time[2]
  ms = (now - now % 1000) / 1000
  if KEYS[3] then
    -- include served
    if not serves(got[3], print, run, counting) then
      -- include gate
      if gate(KEYS[3], print, run, counting, now) then
        -- include leave
        leave(from, mine)
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
        got[2] = false
        return
      end
      owner = sub(entry, 18)
    end
    local key, place = name .. 'place:' .. owner, nil
    if mine ~= nil then
      place = call('MGET', key)[1]
    else
      local found = call('MGET', key, tokens, name .. 'place:' .. from)
      place, counter, mine = found[1], found[2], found[3]
    end
    local last = counter
    if mine then
      -- include leave
      leave(from, mine)
      mine, place = false, owner ~= from and place
    end
    if to ~= '' then
      if not place then
        return
      end
      call('LREM', name .. 'line', '1', sub(place, 15, 30) .. ' ' .. owner)
      to = ''
    end
    if place then
      call('DEL', key)
      -- A pattern that does all of this takes twice as long.
      local a = find(place, ' ', 32, true)
      local b = a and find(place, ' ', a + 1, true)
      local c = b and find(place, ' ', b + 1, true)
      local d = c and find(place, ' ', c + 1, true)
      local spare = d and tonumber(sub(place, a + 1, b - 1))
      -- The mark has been compared with the list of the client that releases, only.
      local list = KEYS[3] and d and string.match(sub(place, b + 1, c - 1), '^b?g(.+)')
      if list and list ~= print then
        local marked = string.match(got[3], '^2 %S+ (%S+)')
        if marked ~= '-' and marked ~= list and marked ~= sub(list, 1, 12) and marked ~= sub(list, 14) then
          spare = nil
        end
      end
      if spare then
        local stamp, channel, flag = sub(place, 32, a - 1), sub(place, c + 1, d - 1), string.byte(place, b + 1)
        local message, counts
        if flag == 98 or flag == 103 and not KEYS[3] then
          call('DEL', KEYS[1])
          held, left = nil, -2
          message = 'free ' .. owner
        else
          local proposed = ARGV[4]
          -- include draw
          -- MGET does not see what is no string: what was not there must not be there.
          if last then
            call('SET', tokens, text, 'PX', LIFE)
          elseif not call('SET', tokens, text, 'PX', LIFE, 'NX') then
            return
          end
          held, left = sub(place, d + 1), math.max(1, sub(place, 2, 14) - ms)
          call('SET', KEYS[1], held, 'PX', left)
          message, counts = 'handed ' .. owner .. ' ' .. text .. ' ' .. stamp .. ' ' .. time[1] .. ' ' .. time[2], true
          if reserved < spare then
            message = message .. ' ' .. string.format('%.0f', reserved)
          end
        end
        local sharded = string.byte(channel, 14) == 123 -- see tuning.go
        if redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH', channel, message) ~= 0 or string.byte(place) ~= 48 then
          return true
        end
        if counts and last then
          call('SET', tokens, last, 'PX', LIFE)
        elseif counts then
          call('DEL', tokens)
        end
      end
    end
  end
end
