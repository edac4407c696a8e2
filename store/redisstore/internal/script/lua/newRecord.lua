-- newRecord returns the record of a free lock of a kind.
local function newRecord(kind)
  return {kind = kind, limit = string.sub(kind, 2) + 0, shared = string.byte(kind) == 114, queueEnds = 0, holds = {}}
end
