-- inSlots is inTheWay for a request that must have slots which others have. It reads all grants:
-- only an owner asks so whose slots were given to others.
-- uses endsOf, rankOf, readHold
local function inSlots(record, slots)
  local must, senior, lasts = {}, nil, nil
  for slot in string.gmatch(slots, '%d+') do
    must[slot] = true
  end
  local all = call('HGETALL', record.held)
  for i = 1, #all, 2 do
    local h, blocks = readHold(all[i + 1], all[i]), false
    if h then
      for slot in string.gmatch(h.slots, '%d+') do
        blocks = blocks or must[slot]
      end
    end
    if blocks then
      local ends, rank = endsOf(record, h), rankOf(h.owner) + 0
      lasts = math.min(lasts or ends, ends)
      if not senior or rank < senior.rank or rank == senior.rank and h.owner < senior.owner then
        senior, h.rank = h, rank
      end
    end
  end
  if senior then
    return senior.value, lasts - record.ms
  end
end
