-- sweep removes from the queue waiters whose place has ended, at most 64 at a time. The
-- argument seen is how many places at the beginning were found alive so far, and bound is
-- the earliest end of those (ms). It returns both for the next sweep; seen is 0 when the
-- whole queue was swept.
-- uses readPlace
local function sweep(name, bound, seen)
  local queue = name .. 'line'
  if seen == 0 then
    bound = 9999999999999
  end
  local some, places = call('LRANGE', queue, seen, seen + 63), {}
  for i, e in ipairs(some) do
    places[i] = name .. 'place:' .. string.sub(e, 18)
  end
  if #some > 0 then
    for i, alive in ipairs(call('MGET', unpack(places))) do
      if alive then
        local _, ends = readPlace(alive)
        bound, seen = math.min(bound, ends or 0), seen + 1
      else
        call('LREM', queue, '1', some[i])
      end
    end
  end
  return bound, #some < 64 and 0 or seen
end
