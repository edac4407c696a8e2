-- leaveOut takes a grant out of the sums of a record. Nothing is written.
-- uses markSlots
local function leaveOut(record, h)
  record.used = record.used - h.weight
  markSlots(record, h.slots, '0')
  if record.used <= 0 then
    record.used, record.top, record.bits = 0, '0', ''
  end
end
