-- downgrade makes the writer of a read-write lock a reader, with a new token, and lets readers
-- that wait join it. An owner that reads already keeps what it has.
--
-- record, h, ms: of the lock, its owner's grant, and the clock (ms)
-- ttl: how long the grant lasts from now at least (ms)
-- last: the token counter; proposed, time, mark, print: see hand
-- refusal: why the mark forbids grants, if it does
--
-- Returns the result of grantReply, {0, '', -2} for an owner without a grant, or
-- whose grant was broken, or {6, kind in use, value of a holder}.
-- uses advance, draw, grantReply, renewTo, writeHold
local function downgrade(key, counter, record, h, ttl, last, proposed, time, ms, refusal, mark, print)
  if not h or h.broken == '1' then
    return {0, '', -2}
  elseif not record.shared then
    return {6, record.kind, h.value}
  end
  if h.weight >= record.limit then
    record.used, h.weight = record.used - h.weight + 1, 1
    h.token = draw(proposed, last, time[1] * 1000000 + time[2])
    last = h.token
    record.top = h.token
    call('SET', counter, last, 'PX', LIFE)
    renewTo(record, h, ms + ttl)
    writeHold(record, h)
  else
    renewTo(record, h, ms + ttl)
  end
  if not refusal then
    advance(key, record, last, proposed, time, mark, print, nil)
  end
  return grantReply(record, h, '', time)
end
