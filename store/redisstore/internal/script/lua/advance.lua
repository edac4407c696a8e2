-- advance hands a lock that several can hold to waiters: to as many from the head of the queue
-- as there is room for together, as hand does for a mutex. Places in the queue that are for
-- another kind of lock are removed: their owners are told when they ask again. What changed is
-- written.
--
-- record: the lock's, or a new one, if the lock is free
-- last: the token counter
-- proposed, time, mark, print: see hand
--
-- Returns the token counter, and, if waiters remain, the value and the PTTL (ms) of the first
-- one's place, and, if another kind is in the way of a lock that nobody has, that kind: of the
-- first place, or a mutex, to which a semaphore resized to one permit was handed.
-- uses offerShare, readPlace, readWish, room, writeRecord
local function advance(key, record, isNew, last, proposed, time, mark, print)
  local name = '{' .. key .. '}:'
  local line, tokens = name .. 'line', name .. 'token'
  local now = time[1] * 1000000 + time[2]
  local ms, left, changed, before = (now - now % 1000) / 1000, room(record), false, last
  local head, lasts, kind
  while true do
    local entry = call('LINDEX', line, '0')
    if not entry then
      changed = changed or record.line ~= 0
      record.line = 0
      call('DEL', name .. 'waits')
      break
    end
    local owner = string.sub(entry, 18)
    local found = name .. 'place:' .. owner
    local place = call('MGET', found)[1]
    local wish = place and readWish(place)
    local single = record.kind == 's1' -- whose waiters ask for a mutex
    local other = wish and wish.kind ~= record.kind and not (single and wish.kind == '')
    if single and wish and wish.kind == '' then
      head, lasts = wish.value, call('PTTL', found)
      if not record.holds[1] then
        -- uses hand
        call('DEL', key)
        local _, held = hand(key, '', '', proposed, last, false, time, mark, print)
        return last, held, nil, held and ''
      end
      break
    end
    if other and isNew and not record.holds[1] then
      head, lasts, kind = wish.value, call('PTTL', found), wish.kind
      break
    end
    if wish and not other and wish.weight > left and wish.weight <= record.limit then
      head, lasts = wish.value, call('PTTL', found)
      break
    end
    call('LPOP', line) -- frees memory, so that no later write can be refused
    call('DEL', found)
    if wish and not other and wish.weight <= record.limit then
      local taken, counter = offerShare(record, owner, place, wish, proposed, last, now, time, mark, print)
      if taken then
        left, last, changed = left - wish.weight, counter, true
      end
    end
  end
  if last ~= before then
    call('SET', tokens, last, 'PX', LIFE)
  end
  if changed and not (isNew and not record.holds[1]) then
    writeRecord(key, record, ms)
  end
  return last, head, lasts, kind
end
