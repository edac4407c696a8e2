-- flagged returns the value of a holder or waiter with "word":true at the beginning of its
-- description: broken for a holder whose lease was broken, waiting for a waiter that is ahead.
-- A description that is no JSON object, which nobody reads, gives way to that.
local function flagged(value, word)
  local owner, rest = string.match(value, '^([^ ]+) {(.*)$')
  if not owner then
    return string.match(value, '^[^ ]*') .. ' {"' .. word .. '":true}'
  end
  return owner .. ' {"' .. word .. '":true' .. (rest == '}' and '' or ',') .. rest
end
