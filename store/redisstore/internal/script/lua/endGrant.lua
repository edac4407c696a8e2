-- endGrant removes a grant from a record. The sums are written with an empty field for it first:
-- see dropEnded.
-- uses holdMember, leaveOut, sumsOf
local function endGrant(record, h)
  leaveOut(record, h)
  -- A server that is out of memory refuses a first write that needs some.
  call('HDEL', record.held, '')
  call('HSET', record.held, ' ', sumsOf(record), h.owner, '')
  call('HDEL', record.held, h.owner)
  call('ZREM', record.ends, holdMember(h))
  call('ZREM', record.ranks, h.owner)
end
