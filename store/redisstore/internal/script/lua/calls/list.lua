-- Read many locks at once, for a listing.
--
-- KEYS: the locks, their token counters in the same order, and the mark (see arrive) if
--       there is one
-- Returns how long the quarantine still lasts (us), why, and then four values for each
-- held lock: its number among KEYS, the value of the holder, its PTTL, and the counter.
-- Keys that are not strings are left out. A value longer than any of ours is cut.
-- uses quarantineLeft, recordText
local n = math.floor(#KEYS / 2)
local said = {quarantineLeft(KEYS[2 * n + 1])}
for i = 1, n do
  local value = redis.pcall('GET', KEYS[i])
  if type(value) == 'string' then
    local counter = redis.pcall('GET', KEYS[n + i])
    local pttl
    if string.find(value, '^ [sr]%d+ %d+') then
      local text, lasts = recordText(KEYS[i], value)
      value, pttl = text or value, lasts
    else
      value = string.sub(value, 1, 5000)
    end
    said[#said + 1] = i
    said[#said + 1] = value
    said[#said + 1] = pttl or call('PTTL', KEYS[i])
    said[#said + 1] = type(counter) == 'string' and counter or '0'
  end
end
return said
