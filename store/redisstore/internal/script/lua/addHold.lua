-- addHold grants a lock that several can hold, with a new token. A reader beside others shares
-- theirs, and draws none, unless it is from before the server's last quarantine: the server may
-- have forgotten a writer that came between. The token counter is written first, and the grant
-- last.
--
-- value, weight, made, slots: of the grant (see readRecord)
-- ends, now: its end (ms), and the clock (us)
-- proposed, last: see draw
-- several: whether this is one of several servers
-- mark: the mark's text, nil if it is not looked at
--
-- Returns the grant, and the token counter afterwards.
-- uses beginRecord, draw, holdMember, markSlots, prolong, rankOf, writeHold
local function addHold(record, value, weight, made, slots, ends, proposed, last, now, several, mark)
  local shares = record.shared and weight < record.limit
  local token = last
  if shares and record.used > 0 then
    if not token or record.top + 0 > token + 0 then -- the counter may have been lost
      token = record.top
    end
  end
  local opens = mark and string.match(mark, '^1 %S+ %S+ %S+ %S+ (%d+)') -- see markFields
  if not shares or record.used == 0 or opens and token + 0 < opens + 0 then
    token = draw(proposed, token, now)
  end
  local first, owner = record.used == 0, string.match(value, '^[^ ]+')
  local h = {number = string.format('%.0f', record.count + 1), token = token, weight = weight, begun = string.format('%.0f', record.ms), slots = slots, broken = '0', made = made, value = value, owner = owner}
  beginRecord(record, ends)
  prolong(record, ends)
  call('SET', '{' .. record.key .. '}:token', token, 'PX', LIFE)
  call('ZADD', record.ends, string.format('%.0f', ends), holdMember(h))
  if several then
    call('ZADD', record.ranks, rankOf(owner), owner)
  end
  record.used, record.count = record.used + weight, record.count + 1
  if token + 0 > record.top + 0 then
    record.top = token
  end
  markSlots(record, slots, '1')
  writeHold(record, h)
  if first then -- these keys are new
    local left = string.format('%.0f', record.lasts - record.ms)
    call('PEXPIRE', record.held, left)
    call('PEXPIRE', record.ends, left)
    call('PEXPIRE', record.ranks, left)
  end
  return h, token
end
