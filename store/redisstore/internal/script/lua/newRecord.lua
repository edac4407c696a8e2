-- newRecord returns the record of a free lock of a kind; see readRecord. Its first grant writes it.
local function newRecord(key, kind, ms)
  local name = '{' .. key .. '}:'
  return {
    key = key, held = name .. 'held', ends = name .. 'ends', ranks = name .. 'ranks', ms = ms, isNew = true,
    lasts = 0, kind = kind, limit = string.sub(kind, 2) + 0, shared = string.byte(kind) == 114, queueEnds = 0,
    used = 0, count = 0, top = '0', bits = '',
  }
end
