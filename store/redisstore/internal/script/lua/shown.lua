-- shown returns what a mutex's step says of the lock's key: its value and its PTTL. Of a lock that
-- several can hold it names a holder.
local function shown(key, value)
  if string.find(value or '', '^ [sr]%d+ %d+') then
    -- uses recordText
    local text, left = recordText(key, value, true)
    if text then
      return text, left
    end
  end
  return value, call('PTTL', key)
end
