-- markSlots marks slots of a record as taken ('1') or free ('0'). Nothing is written.
local function markSlots(record, slots, as)
  local sub, bits = string.sub, record.bits
  for slot in string.gmatch(slots, '%d+') do
    local before = slot + 0
    if #bits < before then
      bits = bits .. string.rep('0', before - #bits)
    end
    bits = sub(bits, 1, before) .. as .. sub(bits, before + 2)
  end
  record.bits = bits
end
