-- settle makes the keys of a record last as long as its longest grant or place, after one of them
-- ended or changed. Without any it deletes the keys: the lock is free.
-- uses lastUntil, sumsOf
local function settle(record)
  local last = record.used > 0 and call('ZRANGE', record.ends, '-1', '-1', 'WITHSCORES')[2]
  local lasts = math.max(last and last + 0 or 0, record.queueEnds)
  if lasts <= record.ms then
    call('DEL', record.key, record.held, record.ends, record.ranks)
    record.isNew = true
    return
  end
  if record.isNew then -- the sums are there as long as the lock's key: otherwise a member of a cluster is giving them away
    call('DEL', record.held, record.ends, record.ranks)
    call('HSET', record.held, ' ', sumsOf(record))
  end
  lastUntil(record, lasts)
end
