-- End the lease of ARGV[1], as described in release; the result is said. The values got
-- are the lock, waits and the mark; counter is the token counter, and mine the place of
-- from, which releases the lock: nil if it was not read. Afterwards held is the lock's
-- value and left its PTTL. If the clock was read, it is in time, in now (us) and in ms.
-- With the mark, the last three arguments are those of gate.
local held, left, time, now, ms = got[1], -2
local ours, said = held == ARGV[1], {1}
if held and not ours and string.find(held, '^[^ ]+ {"broken":true[,}]') then -- see break
  -- include broken
  ours = held == broken(ARGV[1])
end
-- Another attempt of an owner that is not new may have been granted the lock again.
local attempt = string.match(KEYS[2], ' (.+)', #KEYS[1] + 9)
if ours and attempt then
  local made = call('MGET', name .. 'made')[1]
  if made == attempt then
    call('DEL', name .. 'made')
  elseif made or string.find(ARGV[3], 'u', 1, true) then
    ours = false
  end
end
if not ours then
  left = call('PTTL', KEYS[1])
  said = {0, held or '', left}
  if not held and left ~= -2 then
    return call('GET', KEYS[1]) -- MGET returns no value for a key that is not a string
  end
elseif not got[2] then
  call('DEL', KEYS[1])
  held = nil
end
if got[2] then
  if held and not ours then
    -- include leave
    leave(from, mine) -- if that cannot be written, the release has to be sent again
  else
    -- include hand
    local well, done = pcall(hand, ARGV[5], ARGV[#ARGV - 2], ARGV[#ARGV - 1], ARGV[#ARGV])
    if not (well and done) then
      call('DEL', KEYS[1])
      held, left = nil, -2
    end
  end
end
-- Write the tombstone last. A server that is out of memory refuses a script whose first
-- write needs memory, and all writes so far free some.
if ARGV[2] ~= '0' and (not ours or string.byte(ARGV[3]) == 49) then
  local buried = redis.pcall('SET', KEYS[2], '', 'PX', ARGV[2])
  if buried.err and not ours then
    return buried
  end
end
