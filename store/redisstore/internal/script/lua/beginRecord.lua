-- beginRecord writes the lock's key of a record that is new, until ends (ms) or the latest end of
-- a place. What an earlier lock of that name has left is removed. The sums are there as long as
-- that key: if they are not, a member of a cluster is giving them away.
-- uses sumsOf
local function beginRecord(record, ends)
  if record.isNew then
    record.lasts = math.max(ends, record.queueEnds)
    record.text = ' ' .. record.kind .. ' ' .. string.format('%.0f', record.queueEnds)
    call('DEL', record.held, record.ends, record.ranks)
    call('HSET', record.held, ' ', sumsOf(record))
    call('PEXPIRE', record.held, string.format('%.0f', record.lasts - record.ms))
    call('SET', record.key, record.text, 'PX', string.format('%.0f', record.lasts - record.ms))
    record.isNew = false
  end
end
