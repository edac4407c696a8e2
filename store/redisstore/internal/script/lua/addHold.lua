-- addHold adds a grant to a lock that several can hold, with a new token. A reader beside others shares
-- theirs, and draws none, unless it is from before the server's last quarantine: the server may
-- have forgotten a writer that came between. The token counter is written first, and the grant
-- last.
--
-- h: the grant, with its value, weight, made and slots (see readRecord); addHold sets the rest
-- ends: when it ends (ms)
-- several: whether this is one of several servers
-- last: the token counter
-- step: see newStep
--
-- Returns the token counter afterwards.
-- uses beginRecord, draw, holdMember, markSlots, prolong, rankOf, writeHold
local function addHold(record, h, ends, several, last, step)
  local shares = record.shared and h.weight < record.limit
  local token = last
  if shares and record.used > 0 then
    if not token or record.top + 0 > token + 0 then -- the counter may have been lost
      token = record.top
    end
  end
  local opens = step.mark and string.match(step.mark, '^1 %S+ %S+ %S+ %S+ (%d+)') -- see markFields
  if not shares or record.used == 0 or opens and token + 0 < opens + 0 then
    token = draw(step.proposed, token, step.now)
  end
  local first = record.used == 0
  h.number, h.owner, h.token = string.format('%.0f', record.count + 1), string.match(h.value, '^[^ ]+'), token
  h.begun, h.broken = string.format('%.0f', record.ms), '0'
  beginRecord(record, ends)
  prolong(record, ends)
  call('SET', '{' .. record.key .. '}:token', token, 'PX', LIFE)
  call('ZADD', record.ends, string.format('%.0f', ends), holdMember(h))
  if several then
    call('ZADD', record.ranks, rankOf(h.owner), h.owner)
  end
  record.used, record.count = record.used + h.weight, record.count + 1
  if token + 0 > record.top + 0 then
    record.top = token
  end
  markSlots(record, h.slots, '1')
  writeHold(record, h)
  if first then -- these keys are new
    local left = string.format('%.0f', record.lasts - record.ms)
    call('PEXPIRE', record.held, left)
    call('PEXPIRE', record.ends, left)
    call('PEXPIRE', record.ranks, left)
  end
  return token
end
