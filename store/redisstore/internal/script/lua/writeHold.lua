-- writeHold writes a grant that changed, and the sums of its record.
-- uses sumsOf
local function writeHold(record, h)
  local text = string.format('%s %s %.0f %s %s %s %s ', h.number, h.token, h.weight, h.begun, h.slots, h.broken, h.made)
  call('HSET', record.held, ' ', sumsOf(record), h.owner, text .. h.value)
end
