-- lastUntil makes the keys of a record last until lasts (ms). The lock's key is written last: without
-- it, a record does not count.
local function lastUntil(record, lasts)
  local left, text = lasts - record.ms, ' ' .. record.kind .. ' ' .. string.format('%.0f', record.queueEnds)
  call('PEXPIRE', record.held, left)
  call('PEXPIRE', record.ends, left)
  call('PEXPIRE', record.ranks, left)
  if text == record.text then
    call('PEXPIRE', record.key, left)
  else
    call('SET', record.key, text, 'PX', left)
  end
  record.text, record.lasts, record.isNew = text, lasts, false
end
