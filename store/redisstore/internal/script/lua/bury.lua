-- bury leaves a tombstone that lasts life (ms), or longer if it did. It returns an error reply
-- if that cannot be written, and nil otherwise.
local function bury(tomb, life)
  if call('PTTL', tomb) < tonumber(life) then
    local buried = redis.pcall('SET', tomb, '', 'PX', life)
    return buried.err and buried
  end
end
