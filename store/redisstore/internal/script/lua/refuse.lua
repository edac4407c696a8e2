-- refuse answers a request that is not granted the lock. A request that waits gets a place
-- in the queue. The arguments are those of acquire and admit; guarded is set on one of several
-- servers, which also tells the clients that it refuses what its clock reads, so that they
-- notice if it jumps.
-- uses enqueue
local function refuse(wanted, got, time, guarded)
  local key, mode = wanted.key, wanted.mode
  local held, left = got[1], call('PTTL', key)
  if not held and left ~= -2 then -- MGET returns no value for a key that is not a string
    -- uses redisson
    held = redisson(key)
    if not held then
      return call('GET', key)
    end
  end
  if held and string.byte(held) == 32 then
    -- uses shown
    held, left = shown(key, held)
  end
  if mode == '' and not guarded then
    return {0, held, left}
  end
  time = time or call('TIME')
  if mode == '' then
    return {0, held, left, 0, 0, time[1], time[2]}
  end
  if got[3] then
    return {2}
  end
  local waits, was = got[4], got[5]
  wanted.owner, wanted.wish = string.sub(wanted.tombstone, #key + 9), wanted.value
  if waits == nil then
    local more = call('MGET', '{' .. key .. '}:waits', '{' .. key .. '}:place:' .. wanted.owner)
    waits, was = more[1], more[2]
  end
  return enqueue(wanted, held, left, waits, was, time)
end
