-- Hand the lock, which nobody has any more, to the first waiter whose push is received,
-- or whose place says that it never could receive one (see place). This happens in the
-- same step as the release. Other waiters are removed from the queue: their processes are
-- gone, or the mark names another membership than theirs. In quarantine nothing is granted.
--
-- The waiter gets a push on its channel: "handed", owner, token, stamp, the clock (s,
-- us), and, if fewer tokens are reserved than it asked for, how many below that one. A
-- waiter that only wants to know that the lock is free gets "free", owner. The grant is
-- written before the push; if nobody receives that, the grant is undone and the counter
-- restored. A subscriber to all channels by a pattern seems to receive every push: then
-- the place of a dead process ends by its TTL.
--
-- The owner that releases the lock has no place afterwards. Returns whether the lock's
-- key is in the state that held and left describe.
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
      -- A pattern that matches all of this takes twice as long.
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
          -- MGET returns no value for a key that is not a string, so the key must not
          -- exist.
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
