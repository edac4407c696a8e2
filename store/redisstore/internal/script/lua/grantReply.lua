-- grantReply is the answer to an owner that has a grant of a lock that several can hold; see
-- admit. last is the last of its tokens, and reserved how many below that one belong to it.
local function grantReply(record, h, last, reserved, slots, time)
  local said = {1, last, time[1], time[2], reserved, string.match(h.slots, '%d+') + 0}
  if slots ~= '' then
    said[7] = record.shared and '' or h.slots
  end
  return said
end
