-- Remove from the line those whose place has ended, 64 places at a time, and see when
-- the next one does.
if seen == 0 then
  bound = 9999999999999
end
local some, places = call('LRANGE', line, seen, seen + 63), {}
for i, e in ipairs(some) do
  places[i] = name .. 'place:' .. sub(e, 18)
end
if #some > 0 then
  for i, alive in ipairs(call('MGET', unpack(places))) do
    if alive then
      bound, seen = math.min(bound, tonumber(sub(alive, 2, 14)) or 0), seen + 1
    else
      call('LREM', line, '1', some[i])
    end
  end
end
if #some < 64 then
  seen = 0
end
stale = true
