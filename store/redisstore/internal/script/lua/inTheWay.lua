-- inTheWay returns the value of a holder that a request for a lock that several can hold has to
-- wait for, and how long it is until one of the grants in its way ends (ms). That is the grant
-- which ends first. On one of several servers the holder is the most senior one, so that waiters
-- learn the same name from all of them.
--
-- fits: the grants leave room; in the way are then those with slots that the request must have
-- slots: of the request (see calls/admit); ms: the clock (ms)
local function inTheWay(record, fits, slots, ms)
  local first, senior, rank, lasts
  local must = {}
  if fits then
    for slot in string.gmatch(slots, '%d+') do
      must[slot] = true
    end
  end
  for _, h in ipairs(record.holds) do
    local blocks = not fits
    if fits then
      for slot in string.gmatch(h.slots, '%d+') do
        blocks = blocks or must[slot]
      end
    end
    if blocks then
      if not lasts or h.ends < lasts then
        first, lasts = h, h.ends
      end
      if slots ~= '' then -- an owner's name ends with a point and its rank
        local its = string.match(h.owner, '%.([0-9a-z]+)$') or ''
        if not senior or #its < #rank or #its == #rank and (its < rank or its == rank and h.owner < senior.owner) then
          senior, rank = h, its
        end
      end
    end
  end
  if first then
    return (senior or first).value, lasts - ms
  end
end
