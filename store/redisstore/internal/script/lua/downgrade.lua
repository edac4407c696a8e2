-- downgrade makes the writer of a read-write lock a reader, with a new token, and lets readers
-- that wait join it. An owner that reads already keeps what it has.
--
-- record, h: of the lock, and its owner's grant
-- ttl: how long the grant lasts from now at least (ms)
-- last: the token counter; step: see newStep
--
-- Returns the result of grantReply, {0, '', -2} for an owner without a grant, or
-- whose grant was broken, or {6, kind in use, value of a holder}.
-- uses advance, draw, grantReply, renewTo, writeHold
local function downgrade(counter, record, h, ttl, last, step)
  if not h or h.broken == '1' then
    return {0, '', -2}
  elseif not record.shared then
    return {6, record.kind, h.value}
  end
  if h.weight >= record.limit then
    record.used, h.weight = record.used - h.weight + 1, 1
    h.token = draw(step.proposed, last, step.now)
    last = h.token
    record.top = h.token
    call('SET', counter, last, 'PX', LIFE)
    renewTo(record, h, step.ms + ttl)
    writeHold(record, h)
  else
    renewTo(record, h, step.ms + ttl)
  end
  if not step.refusal then
    advance(record, last, step, nil)
  end
  return grantReply(record, h, '', step.time)
end
