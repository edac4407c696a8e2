-- endsOf returns when a grant ends (ms).
-- uses holdMember
local function endsOf(record, h)
  return (call('ZSCORE', record.ends, holdMember(h)) or 0) + 0
end
