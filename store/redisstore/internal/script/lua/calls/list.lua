-- Read many locks at once, for a listing.
--
-- KEYS: the locks, their token counters in the same order, and the mark (see arrive) if
--       there is one
-- Returns how long the quarantine still lasts (us), why, and then four values for each
-- held lock: its number among KEYS, the value of the holder, its PTTL, and the counter.
-- Keys that are not strings are left out. A value longer than any of ours is cut, except a
-- record (see readRecord), which begins with a space.
-- uses quarantineLeft
local n = math.floor(#KEYS / 2)
local said = {quarantineLeft(KEYS[2 * n + 1])}
for i = 1, n do
  local value = redis.pcall('GET', KEYS[i])
  if type(value) == 'string' then
    local counter = redis.pcall('GET', KEYS[n + i])
    said[#said + 1] = i
    said[#said + 1] = string.byte(value) == 32 and value or string.sub(value, 1, 5000)
    said[#said + 1] = call('PTTL', KEYS[i])
    said[#said + 1] = type(counter) == 'string' and counter or '0'
  end
end
return said
