-- renewHold makes grants of a lock that several can hold last at least ttl (ms) from now, and
-- keeps the token counter. It never shortens or creates one. A grant that was broken is not
-- renewed. All are those of one client, and cost little more than one.
--
-- One of several servers ends a grant with other slots than those of the lease, and the
-- writer's grant of an owner that reads since becomes a reader's: it missed an earlier request.
-- Waiters are served with the next request.
--
-- got: the values of the lock and of its token counter
-- leases: n, how many; args and before, after which there are the TTL (ms), the kind and the weight of
--     the leases (see readRecord), a proposed token, and of each lease the owner and the slots (see
--     calls/admit)
-- step: see newStep
--
-- Returns {1, the clock (s, us)}, {0, '', -2} for an owner without a grant, or the refusal. On one
-- of several servers an owner that could not be granted the lock now gets {0, value of a holder
-- in the way, its PTTL}. For several leases it returns the usual result, which
-- is the clock or the refusal, or {the usual result, and the number and the result of each lease
-- with another one}.
-- uses readHold, readRecord, renewTo
local function renewHold(key, counter, got, leases, step)
  local text, last, time, refusal = got[1], got[2], step.time, step.refusal
  local n, args, before = leases.n, leases.args, leases.before
  local ttl, kind, weight = args[before + 1], args[before + 2], args[before + 3] + 0
  before = before + 4
  local record = readRecord(key, text, step.ms, args[before + 1])
  if refusal and refusal.err then
    return refusal
  elseif not record and not text and call('PTTL', key) ~= -2 then
    return call('GET', key) -- MGET returns no value for a key that is not a string
  end
  local owners = {}
  for i = 1, n do
    owners[i] = args[before + 2 * i - 1]
  end
  local texts = record and call('HMGET', record.held, unpack(owners)) or {}
  local usual, others, renewed = refusal or {1, time[1], time[2]}, nil, false
  for i, owner in ipairs(owners) do
    local slots, h, said = args[before + 2 * i], readHold(texts[i], owner), nil
    if h and string.byte(slots) == 61 and h.slots ~= string.sub(slots, 2) and h.broken ~= '1' and not refusal then
      -- uses endGrant, settle
      endGrant(record, h)
      settle(record)
      h = nil
    end
    if not h or h.broken == '1' then
      if slots ~= '' and record then
        -- uses inTheWay, pickSlots, room
        local fits = record.kind == kind and weight <= room(record)
        local value, lasts = nil, nil
        if not fits or not pickSlots(record, weight, slots) then
          value, lasts = inTheWay(record, fits, slots)
        end
        said = {0, value or '', lasts or -2}
      elseif slots ~= '' and text then
        said = {0, text, call('PTTL', key)}
      else
        said = {0, '', -2}
      end
    elseif not refusal then
      if not renewed then
        call('PEXPIRE', counter, LIFE) -- first, since a server that is out of memory refuses a first write that needs some
        renewed = true
      end
      renewTo(record, h, step.ms + ttl)
      if slots ~= '' and record.shared and h.weight > weight then
        -- uses draw, writeHold
        record.used, h.weight = record.used - h.weight + weight, weight
        h.token = draw(step.proposed, last, step.now)
        last, record.top = h.token, h.token
        call('SET', counter, last, 'PX', LIFE)
        writeHold(record, h)
      end
    end
    if said and n == 1 then
      return said
    elseif said then
      others = others or {usual}
      others[#others + 1] = i
      others[#others + 1] = said
    end
  end
  return others or usual
end
