-- flagged returns the value of a holder or waiter with "word":true at the beginning of its
-- description: broken for a holder whose lease was broken, waiting for a waiter that is ahead.
local function flagged(value, word)
  local owner, rest = string.match(value, '^([^ ]+) {(.*)$')
  if not owner then
    return value .. ' {"' .. word .. '":true}'
  end
  return owner .. ' {"' .. word .. '":true' .. (rest == '}' and '' or ',') .. rest
end
