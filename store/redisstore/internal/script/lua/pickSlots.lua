-- pickSlots returns the slots that a new grant of a lock that several can hold gets, as text:
-- ascending numbers with commas between them. They are the smallest that no grant has: one, or
-- as many as its weight if every permit is numbered, whether they fit or not. See calls/admit for slots: those that the
-- owner wants come first, and if it must have them and they are taken, there is no result.
local function pickSlots(record, weight, slots)
  local bits, wanted, free = record.bits, string.match(slots, '%d.*'), true
  if wanted then
    for slot in string.gmatch(wanted, '%d+') do
      free = free and string.byte(bits, slot + 1) ~= 49
    end
    if free then
      return wanted
    elseif string.byte(slots) == 61 then
      return nil
    end
  end
  local found, at, most = {}, 0, slots ~= '' and not record.shared and weight or 1
  while #found < most do
    at = at < #bits and string.find(bits, '0', at + 1, true) or math.max(#bits, at) + 1
    found[#found + 1] = string.format('%.0f', at - 1)
  end
  return table.concat(found, ',')
end
