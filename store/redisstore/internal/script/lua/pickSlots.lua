-- pickSlots returns the slots that a new grant of a lock that several can hold gets, as text:
-- ascending numbers with commas between them. They are the smallest that no grant has: one, or
-- as many as its weight if every permit is numbered, whether they fit or not. See calls/admit for slots: those that the
-- owner wants come first, and if it must have them and they are taken, there is no result.
local function pickSlots(record, weight, slots)
  local taken, wanted, free = {}, string.match(slots, '%d.*'), true
  for _, h in ipairs(record.holds) do
    local single = tonumber(h.slots)
    if single then
      taken[single] = true
    else
      for slot in string.gmatch(h.slots, '%d+') do
        taken[slot + 0] = true
      end
    end
  end
  if wanted then
    for slot in string.gmatch(wanted, '%d+') do
      free = free and not taken[slot + 0]
    end
    if free then
      return wanted
    elseif string.byte(slots) == 61 then
      return nil
    end
  end
  local found, slot, most = {}, 0, slots ~= '' and not record.shared and weight or 1
  while #found < most do
    if not taken[slot] then
      found[#found + 1] = string.format('%.0f', slot)
    end
    slot = slot + 1
  end
  return table.concat(found, ',')
end
