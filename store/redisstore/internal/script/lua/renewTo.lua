-- renewTo makes a grant last until ends (ms) at least. It never shortens one.
-- uses holdMember, prolong
local function renewTo(record, h, ends)
  local member = holdMember(h)
  if ends > (call('ZSCORE', record.ends, member) or 0) + 0 then
    prolong(record, ends)
    call('ZADD', record.ends, string.format('%.0f', ends), member)
  end
end
