-- endOnly does what endHold would if that is only to delete the lock: the owner's grant is the only
-- one, and nobody waits. It costs less than endHold, and reports whether it has done so. The
-- grant lasts as long as the lock, so the clock is not needed. The arguments are those of
-- endHold.
-- uses readHold
local function endOnly(key, tombstone, held, waits, life, always)
  if not held or waits or life ~= '0' and always == '1' or not string.find(held, '^ [sr]%d+ 0$') then
    return false
  end
  local name, owner = '{' .. key .. '}:', string.sub(tombstone, #key + 9)
  local got = call('HMGET', name .. 'held', ' ', owner)
  local h = readHold(got[2], owner)
  if not h or h.broken == '1' or string.match(got[1] or '', '^%d+') + 0 ~= h.weight then
    return false
  end
  call('DEL', key, name .. 'held', name .. 'ends', name .. 'ranks')
  return true
end
