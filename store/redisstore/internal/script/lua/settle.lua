-- settle makes the keys of a record last as long as its longest grant or place, after one of them
-- ended or changed. Without any it deletes the keys: the lock is free.
local function settle(record)
  local last = record.used > 0 and call('ZRANGE', record.ends, '-1', '-1', 'WITHSCORES')[2]
  local lasts = math.max(last and last + 0 or 0, record.queueEnds)
  if lasts <= record.ms then
    call('DEL', record.key, record.held, record.ends, record.ranks)
    record.isNew = true
    return
  end
  if record.isNew then
    -- uses beginRecord
    beginRecord(record, lasts)
  end
  local left, text = string.format('%.0f', lasts - record.ms), ' ' .. record.kind .. ' ' .. string.format('%.0f', record.queueEnds)
  if text == record.text then
    call('PEXPIRE', record.key, left)
  else
    call('SET', record.key, text, 'PX', left)
  end
  record.text, record.lasts, record.isNew = text, lasts, false
  call('PEXPIRE', record.held, left)
  call('PEXPIRE', record.ends, left)
  call('PEXPIRE', record.ranks, left)
end
