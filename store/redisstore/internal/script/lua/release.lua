-- release deletes the lock if it is ours, or hands it to the first waiter. If it is not
-- ours, and its acquire may still arrive, it leaves a tombstone that prevents it from taking
-- the lock after all. A lease that was renewed always leaves a tombstone: a heal may still
-- arrive. The owner's place is removed. A failure to hand the lock over does not make the
-- release fail. In quarantine the lock goes to nobody.
--
-- ending: see readEnding
-- got: the values of the lock and of {L}:waits, and, if they were read, of the token counter
--     and of the owner's place
-- step: see newStep; nil if there are no waiters
--
-- Returns {1} or {0, value of the holder, its PTTL}, or an error reply; and then, for an
-- owner that rejoins, the lock's value, its PTTL, and whether there may be waiters.
local function release(ending, got, step)
  local key, tombstone, value, life = ending.key, ending.tombstone, ending.value, ending.life
  local name, held, left = '{' .. key .. '}:', got[1], -2
  local ours, said, waits = held == value, {1}, got[2]
  if held and not ours and string.find(held, '^[^ ]+ {"broken":true[,}]') then -- see calls/break
    -- uses flagged
    ours = held == flagged(value, 'broken')
  end
  -- Another attempt of an owner that is not new may have been granted the lock again.
  local attempt = string.match(tombstone, ' (.+)', #key + 9)
  if ours and attempt then
    local made = call('MGET', name .. 'made')[1]
    if made == attempt then
      call('DEL', name .. 'made')
    elseif made or ending.undo == '1' then
      ours = false
    end
  end
  if not ours then
    -- uses shown
    said = {0, shown(key, held)}
    left, said[2] = said[3], said[2] or ''
    if not held and left ~= -2 then
      return call('GET', key) -- MGET returns no value for a key that is not a string
    end
  elseif not waits then
    call('DEL', key)
    held = nil
  end
  if waits then
    -- uses leave
    local from = string.sub(tombstone, #key + 9)
    if held and not ours then
      leave(name, from, got[4]) -- if that cannot be written, the release has to be sent again
    else
      local well, done
      if step.refusal then
        well, done = pcall(leave, name, from, got[4]), false
      else
        -- uses hand
        well, done, held, left = pcall(hand, key, from, ending.to, got[3], got[4], step)
        waits = not well or done ~= nil
      end
      if not (well and done) then
        call('DEL', key)
        held, left = nil, -2
      end
    end
  end
  -- Write the tombstone last. A server that is out of memory refuses a script whose first
  -- write needs memory, and all writes so far free some.
  if life ~= '0' and (not ours or ending.always == '1') then
    -- uses bury
    local failed = bury(tombstone, life)
    if failed and not ours then
      return failed
    end
  end
  return said, held, left, waits
end
