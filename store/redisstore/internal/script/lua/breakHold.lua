-- breakHold breaks the grant of an owner of a lock that several can hold: it is not renewed any
-- more, and ends with its release or its end. With atOnce 1 it ends now, its owner is refused
-- until it would have ended, and waiters get the lock, unless the mark forbids grants.
-- {L}:broken notes it.
--
-- record: of the lock; h: the owner's grant, if it has one
-- asked: the grant's owner and token, atOnce, and begins, note and keep (see calls/break); keep is
--     how long the note lasts after the grant
-- last: the token counter; step: see newStep
--
-- Returns {1, how long the grant lasts (ms)}, 0 if it is over, or {0} if there is no such grant
-- and none was broken.
-- uses advance, bury, endGrant, endsOf, settle, writeHold
local function breakHold(record, h, asked, last, step)
  local name = '{' .. record.key .. '}:'
  if not h or h.token ~= asked.token then
    local known = call('MGET', name .. 'broken')[1]
    if known and string.sub(known, 1, #asked.begins) == asked.begins then
      return {1, 0}
    end
    return {0}
  end
  local left = endsOf(record, h) - step.ms
  if h.broken ~= '1' then
    call('SET', name .. 'broken', asked.begins .. asked.note, 'PX', string.format('%.0f', left + asked.keep))
  end
  if asked.atOnce ~= '1' then
    h.broken = '1'
    writeHold(record, h)
    return {1, left}
  end
  bury(name .. 'gone:' .. asked.owner .. (h.made ~= '' and ' ' .. h.made or ''), string.format('%.0f', left))
  endGrant(record, h)
  settle(record)
  if not step.refusal then
    advance(record, last, step, nil)
  end
  return {1, 0}
end
