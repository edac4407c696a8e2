-- holdMember returns the member of {L}:ends that a grant has. Grants that end at the same time are
-- in the order in which they were made.
local function holdMember(h)
  return string.format('%010.0f', h.number) .. ' ' .. h.owner
end
