-- endHold ends the grant of an owner of a lock that several can hold, and hands the lock to as
-- many waiters as there is room for. It is release for such a lock, but nothing
-- is handed to others if the owner to give way to does not fit or does not wait here.
--
-- held, waits: the values of key and of {L}:waits
-- ending: life, always, undo and to, of the arguments of release
-- step: see newStep
--
-- Returns {1}, or {0, '', -2} for an owner that has no grant, or an error reply.
-- uses bury, endGrant, endsOf, leave, readRecord, settle
local function endHold(key, tombstone, held, waits, ending, step)
  local life, always, to = ending.life, ending.always, ending.to
  local name, from = '{' .. key .. '}:', string.sub(tombstone, #key + 9)
  local owner, attempt = string.match(from, '^[^ ]+'), string.match(from, ' (.+)')
  local record, h = readRecord(key, held, step.ms, owner)
  if not record and not held and call('PTTL', key) ~= -2 then
    return call('GET', key) -- MGET returns no value for a key that is not a string
  end
  local ours = h and not (attempt and h.made ~= attempt and (h.made ~= '' or ending.undo == '1'))
  local said = ours and {1} or {0, '', -2}
  if ours and h.broken == '1' then
    life, always = string.format('%.0f', endsOf(record, h) - step.ms), '1'
    tombstone = name .. 'gone:' .. owner .. (h.made ~= '' and ' ' .. h.made or '')
  end
  if waits then
    leave(name, owner)
  end
  if ours then
    endGrant(record, h)
    settle(record)
  end
  if record and waits and not step.refusal then -- an owner that stands for nobody has no place
    -- uses advance
    advance(record, call('MGET', name .. 'token')[1], step, to ~= '' and to or nil)
  end
  -- Write the tombstone last: all writes so far free memory (see release).
  if life ~= '0' and (not ours or always == '1') then
    local failed = bury(tombstone, life)
    if failed and not ours then
      return failed
    end
  end
  return said
end
