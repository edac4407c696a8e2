-- admitFirst takes a free lock that several can hold for an owner that is the only one to want
-- it, in the lock's key alone (see readRecord). That and endOnly cost a server half of what admit and
-- endHold do. It returns nil and does nothing for any other request, which is left to admit.
--
-- wanted, got: see admit
-- time: the clock, nil if it was not read
-- uses draw, grantReply, take
local function admitFirst(wanted, got, time)
  local key, kind, weight, slots = wanted.key, wanted.kind, wanted.weight, wanted.slots
  if got[1] or got[3] or got[4] or wanted.again ~= '0' or wanted.mode == '1' or string.find(wanted.tombstone, ' ', #key + 9, true) then
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
  time = time or call('TIME')
  local now = time[1] * 1000000 + time[2]
  local ms, last, token = (now - now % 1000) / 1000, got[2], draw(wanted.proposed, got[2], now)
  local text = string.format(' %s 0 %.0f %s %.0f %.0f %.0f %s 0  ', kind, #wanted.value, token, weight, ms + wanted.ttl, ms, picked)
  local said = take(key, '{' .. key .. '}:token', last and last + 0, text .. wanted.value, wanted.ttl, token)
  return said == true and grantReply({shared = shared}, {token = token, slots = picked}, slots, time) or said
end
