-- holdText returns a grant as the record of its lock has it, of its fields as texts; see
-- readRecord. A number below 10^14 may stand for its text.
local function holdText(value, token, weight, ends, begun, slots, broken, made)
  return #value .. ' ' .. token .. ' ' .. weight .. ' ' .. ends .. ' ' .. begun .. ' ' .. slots .. ' ' .. broken .. ' ' .. made .. ' ' .. value
end
