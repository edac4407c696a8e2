-- firstHold returns the grant of a record that ends first, and its end (ms); nothing if there is
-- none.
-- uses holdMember, readHold
local function firstHold(record)
  local from = 0
  while true do
    local some = call('ZRANGE', record.ends, from, from, 'WITHSCORES')
    if not some[1] then
      return
    end
    local owner = string.sub(some[1], 12)
    local h = readHold(call('HMGET', record.held, owner)[1], owner)
    if h and holdMember(h) == some[1] then
      return h, some[2] + 0
    end
    from = from + 1 -- it is left over
  end
end
