-- findHold returns the grant of an owner in a record, and its number; nothing if it has none.
local function findHold(record, owner)
  for i, h in ipairs(record.holds) do
    if h.owner == owner then
      return h, i
    end
  end
end
