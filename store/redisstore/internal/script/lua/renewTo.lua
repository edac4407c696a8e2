-- renewTo makes a grant last until ends (ms) at least. It never shortens one.
-- uses holdMember, lastUntil
local function renewTo(record, h, ends)
  local member = holdMember(h)
  if ends > (call('ZSCORE', record.ends, member) or 0) + 0 then
    call('ZADD', record.ends, ends, member)
    if ends > record.lasts then
      lastUntil(record, ends)
    end
  end
end
