-- seek returns the position of an entry in the queue by its ticket: no entry before it has
-- a larger one. It returns nothing if the entry is not there.
local function seek(queue, ticket, entry)
  local sub = string.sub
  local low, high = -1, 0 -- tickets up to low are smaller, and those from high on are not
  while true do
    local e = call('LINDEX', queue, high)
    if not e or sub(e, 1, 16) >= ticket then
      break
    end
    low, high = high, 2 * high + 1
  end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    local e = call('LINDEX', queue, middle)
    if e and sub(e, 1, 16) < ticket then
      low = middle
    else
      high = middle
    end
  end
  while true do
    local e = call('LINDEX', queue, high)
    if not e or sub(e, 1, 16) ~= ticket then
      return
    end
    high = high + 1
    if e == entry then
      return high
    end
  end
end
