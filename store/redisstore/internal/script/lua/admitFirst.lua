-- admitFirst takes a free lock that several can hold for an owner that is the only one to want
-- it, as admit would for twice the cost. It returns nil and does nothing for any other request,
-- which is left to admit.
--
-- wanted, got: see admit
-- time: the clock, nil if it was not read
-- uses addHold, newRecord, newStep
local function admitFirst(wanted, got, time)
  local key, kind, weight, slots = wanted.key, wanted.kind, wanted.weight, wanted.slots
  if got[1] or got[3] or got[4] or wanted.again == '1' or wanted.mode == '1' or string.find(wanted.tombstone, ' ', #key + 9, true) then
    return nil
  end
  local shared, picked = string.byte(kind) == 114, '0'
  if weight > 1 and weight > string.sub(kind, 2) + 0 then
    return nil
  elseif slots ~= '' and not shared then -- on one of several servers each permit is numbered
    picked = string.match(slots, '%d.*') or weight == 1 and '0'
    if not picked then
      return nil
    end
  end
  if call('PTTL', key) ~= -2 then -- MGET returns no value for a key that is not a string
    return nil
  end
  local step = newStep(time or call('TIME'), wanted.proposed, nil, nil, nil)
  local h = {value = wanted.value, weight = weight, made = '', slots = picked}
  addHold(newRecord(key, kind, step.ms), h, step.ms + wanted.ttl, slots ~= '', got[2], step)
  local said = {1, h.token, step.time[1], step.time[2], string.match(picked, '%d+') + 0}
  if slots ~= '' then
    said[6] = shared and '' or picked
  end
  return said
end
