-- bury leaves a tombstone that lasts life (ms), or longer if it did. It returns an error reply
-- if that cannot be written, and nil otherwise.
local function bury(tombstone, life)
  if call('PTTL', tombstone) < tonumber(life) then
    local buried = redis.pcall('SET', tombstone, '', 'PX', life)
    return buried.err and buried
  end
end
