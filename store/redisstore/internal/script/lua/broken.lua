-- broken returns the value of a lock whose lease was broken: the holder's value with
-- "broken":true at the beginning of its description.
local function broken(value)
  local owner, rest = string.match(value, '^([^ ]+) {(.*)$')
  if not owner then
    return value .. ' {"broken":true}'
  end
  return owner .. ' {"broken":true' .. (rest == '}' and '' or ',') .. rest
end
