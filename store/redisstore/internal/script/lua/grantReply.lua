-- grantReply is the answer to an owner that has a grant of a lock that several can hold; see
-- admit.
local function grantReply(record, h, slots, time)
  local said = {1, h.token, time[1], time[2], string.match(h.slots, '%d+') + 0}
  if slots ~= '' then
    said[6] = record.shared and '' or h.slots
  end
  return said
end
