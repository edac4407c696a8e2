-- endOnly does what endHold would if that is only to delete the lock's key: it has the owner's grant
-- (see readRecord), and nobody waits. It costs less than endHold, and reports whether it has done
-- so. The arguments are those of endHold.
local function endOnly(key, tombstone, held, waits, life, always)
  if not held or waits or life ~= '0' and always == '1' or string.match(held, '^ [sr]%d+ 0 %d+ %d+ %d+ %d+ %d+ [%d,]+ 0  ([^ ]+)') ~= string.sub(tombstone, #key + 9) then
    return false
  end
  call('DEL', key)
  return true
end
