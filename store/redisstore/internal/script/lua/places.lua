-- places returns the first places of the queue whose keys begin with name, most of them at
-- most: for each waiter the value that its lock will have, and its place's PTTL. A user that
-- only looks needs no permission beyond those for reading.
-- uses readPlace
local function places(name, most)
  local all, from = {}, 0
  repeat
    local some = redis.pcall('LRANGE', name .. 'line', from, from + 99) -- if it is a list
    for _, entry in ipairs(some) do
      local key = name .. 'place:' .. string.sub(entry, 18)
      local text, value = call('GET', key), nil
      if text then
        value = select(8, readPlace(text, true))
      end
      if value and #all < 2 * most then
        all[#all + 1] = value
        all[#all + 1] = call('PTTL', key)
      end
    end
    from = from + 100
  until #some < 100 or #all >= 2 * most
  return all
end
