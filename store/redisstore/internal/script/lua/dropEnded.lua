-- dropEnded removes the grants of a record that have ended. It writes the sums without them first,
-- and with these empty fields, since a script that fails must not leave the sums too small.
-- uses holdMember, leaveOut, readHold, sumsOf
local function dropEnded(record)
  local over
  repeat
    local some, members, owners = call('ZRANGE', record.ends, '0', '99', 'WITHSCORES'), {}, {}
    for i = 1, #some, 2 do
      if some[i + 1] + 0 <= record.ms then
        members[#members + 1], owners[#owners + 1] = some[i], string.sub(some[i], 12)
      end
    end
    over = #members < 100
    if members[1] then
      local fields, gone = {' ', ''}, {}
      for i, text in ipairs(call('HMGET', record.held, unpack(owners))) do
        local h = readHold(text, owners[i])
        if h and holdMember(h) == members[i] then
          leaveOut(record, h)
          fields[#fields + 1], fields[#fields + 2] = h.owner, ''
          gone[#gone + 1] = h.owner
        end
      end
      if gone[1] then
        fields[2] = sumsOf(record)
        -- A server that is out of memory refuses a first write that needs some.
        call('HDEL', record.held, '')
        call('HSET', record.held, unpack(fields))
        call('HDEL', record.held, unpack(gone))
        call('ZREM', record.ranks, unpack(gone))
      end
      call('ZREM', record.ends, unpack(members))
    end
  until over
end
