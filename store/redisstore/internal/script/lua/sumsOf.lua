-- sumsOf returns the sums of a record as they are written; see readRecord.
local function sumsOf(record)
  return string.format('%.0f %.0f %s %s', record.used, record.count, record.top, record.bits)
end
