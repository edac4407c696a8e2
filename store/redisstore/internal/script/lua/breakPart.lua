-- breakPart breaks what one of several servers has of a lease of a lock that several can hold. It
-- leaves a tombstone in any case, so that nothing gives the lease back to the server. A server
-- without a part takes the owner's place from it.
--
-- record, h: of the lock, nil if there is none: others may have the lock as another kind; and the
--     owner's grant, if it has one
-- asked: as in breakHold, of the grant as it was shown, with made, the attempt that made it, and
--     life, how long the tombstone is kept (ms); its token is 0 for a server that was shown without it
-- last, step: see breakHold
--
-- Returns {1, how long the grant lasts (ms)}, 0 if it is over, {0} if there is none, {2} if the owner
-- has another grant than the one that was shown, or an error reply.
-- uses advance, breakHold, bury, leave
local function breakPart(key, record, h, asked, last, step)
  if h and (asked.token ~= '0' and h.token ~= asked.token or asked.token == '0' and h.made ~= asked.made) then
    return {2}
  end
  local made = h and h.made or asked.made
  local name = '{' .. key .. '}:'
  local failed = bury(name .. 'gone:' .. asked.owner .. (made ~= '' and ' ' .. made or ''), asked.life)
  if failed then
    return failed
  elseif h then
    asked.token = h.token
    return breakHold(record, h, asked, last, step)
  end
  leave(name, asked.owner)
  if record and not step.refusal then
    advance(record, last, step, nil)
  end
  return {0}
end
