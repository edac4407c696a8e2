-- Find the entry by its ticket: those before it have no larger one.
local low, high = -1, 0 -- there are smaller tickets up to low, and none from high on
while true do
  local e = call('LINDEX', line, high)
  if not e or sub(e, 1, 16) >= ticket then
    break
  end
  low, high = high, 2 * high + 1
end
while high - low > 1 do
  local middle = math.floor((low + high) / 2)
  local e = call('LINDEX', line, middle)
  if e and sub(e, 1, 16) < ticket then
    low = middle
  else
    high = middle
  end
end
while not position do
  local e = call('LINDEX', line, high)
  if not e or sub(e, 1, 16) ~= ticket then
    break
  end
  high = high + 1
  if e == entry then
    position = high
  end
end
