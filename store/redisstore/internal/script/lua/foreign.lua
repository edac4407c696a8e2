-- foreign returns what a step says about a lock that should be ours and is not: {0, value of the
-- holder, its PTTL}, or an error reply for a key that is not a string. The argument held is
-- the lock's value, nil if it has none.
-- uses shown
local function foreign(key, held)
  local said = not held and redis.pcall('GET', key)
  if type(said) == 'table' then
    return said
  end
  local value, left = shown(key, held)
  return {0, value or '', left}
end
