-- admitFirst takes a free lock that several can hold for an owner that is the only one to want
-- it, as admit would for twice the cost. It returns nil and does nothing for any other request,
-- which is left to admit. The arguments are those of admit.
-- uses addHold, newRecord
local function admitFirst(key, counter, tombstone, got, kind, weight, value, ttl, proposed, mode, again, slots, time)
  if got[1] or got[3] or got[4] or again == '1' or mode == '1' or string.find(tombstone, ' ', #key + 9, true) then
    return nil
  end
  local shared, limit, picked = string.byte(kind) == 114, string.sub(kind, 2), '0'
  if weight ~= '1' and weight + 0 > limit + 0 then
    return nil
  elseif slots ~= '' and not shared then -- on one of several servers each permit is numbered
    picked = string.match(slots, '%d.*') or weight == '1' and '0'
    if not picked then
      return nil
    end
  end
  if call('PTTL', key) ~= -2 then -- MGET returns no value for a key that is not a string
    return nil
  end
  time = time or call('TIME')
  local now = time[1] * 1000000 + time[2]
  local ms = (now - now % 1000) / 1000
  local record = newRecord(key, kind, ms)
  local h = addHold(record, value, weight + 0, '', picked, ms + ttl, proposed, got[2], now, slots ~= '')
  if not h then
    return nil
  end
  local said = {1, h.token, time[1], time[2], string.match(picked, '%d+') + 0}
  if slots ~= '' then
    said[6] = shared and '' or picked
  end
  return said
end
