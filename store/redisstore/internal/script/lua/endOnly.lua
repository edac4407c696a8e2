-- endOnly reports whether all that endHold would do is to delete the lock: the owner's grant is
-- the only one, and nobody waits. It costs half of what endHold does. The grant lasts as long as
-- the lock, so the clock is not needed. The arguments are those of endHold.
local function endOnly(key, tombstone, held, waits, life, always)
  if not held or waits or life ~= '0' and always == '1' then
    return false
  end
  -- A record (see readRecord) without places, whose first grant was not broken.
  local _, _, length, start = string.find(held, '^ [sr]%d+ 0 (%d+) %d+ %d+ %d+ %d+ [%d,]+ 0 [^ ]* ()')
  if not start or start + length ~= #held + 1 then
    return false
  end
  local owner = string.sub(tombstone, #key + 9)
  return string.sub(held, start, start + #owner) == owner .. ' '
end
