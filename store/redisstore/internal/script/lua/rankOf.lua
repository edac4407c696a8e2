-- rankOf returns the rank of an owner, whose name ends with a point and the rank. The smallest
-- rank is that of the most senior owner.
local function rankOf(owner)
  local rank = string.match(owner, '%.([0-9a-z]+)$')
  return string.format('%.0f', rank and tonumber(string.sub(rank, 1, 12), 36) or 0)
end
