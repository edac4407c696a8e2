-- addHold adds a grant to a lock that several can hold, with a new token. A reader beside others shares
-- theirs, and draws none, unless it is from before the server's last quarantine: the server may
-- have forgotten a writer that came between. The token counter is written first, and the grant
-- last.
--
-- h: the grant, with its value, weight, made and slots (see readRecord); addHold sets the rest
-- ends: when it ends (ms)
-- last: the token counter
-- step: see newStep
--
-- Returns the token counter afterwards.
-- uses draw, putHold
local function addHold(record, h, ends, last, step)
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
  h.token, h.begun, h.broken = token, string.format('%.0f', record.ms), '0'
  call('SET', '{' .. record.key .. '}:token', token, 'PX', LIFE)
  putHold(record, h, ends)
  return token
end
