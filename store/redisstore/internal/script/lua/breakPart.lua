-- breakPart breaks what one of several servers has of a lease of a lock that several can hold. It
-- leaves a tombstone in any case, so that nothing gives the lease back to the server. A server
-- without a part takes the owner's place from it.
--
-- record, h: of the lock, nil if there is none: others may have the lock as another kind; and the
--     owner's grant, if it has one
-- token, made: of the grant as it was shown, and the attempt that made it; 0 for a server that was
--     shown without it
-- life: how long the tombstone is kept (ms)
-- The other arguments are those of breakHold.
--
-- Returns {1, how long the grant lasts (ms)}, 0 if it is over, {0} if there is none, {2} if the owner
-- has another grant than the one that was shown, or an error reply.
-- uses advance, breakHold, bury, leave
local function breakPart(key, record, h, owner, token, atOnce, begins, note, keep, made, life, last, proposed, time, ms, refusal, mark, print)
  if h and (token ~= '0' and h.token ~= token or token == '0' and h.made ~= made) then
    return {2}
  end
  made = h and h.made or made
  local name = '{' .. key .. '}:'
  local failed = bury(name .. 'gone:' .. owner .. (made ~= '' and ' ' .. made or ''), life)
  if failed then
    return failed
  elseif h then
    return breakHold(key, record, h, owner, h.token, atOnce, begins, note, keep, last, proposed, time, ms, refusal, mark, print)
  end
  leave(name, owner)
  if record and not refusal then
    advance(key, record, last, proposed, time, mark, print, nil)
  end
  return {0}
end
