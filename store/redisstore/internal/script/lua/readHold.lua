-- readHold reads the field of an owner's grant; see readRecord. It returns nothing if there is
-- none.
local function readHold(text, owner)
  local number, token, weight, begun, slots, broken, made, value = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) ([%d,]+) ([01]) ([^ ]*) (.*)$')
  if number then
    return {number = number, token = token, weight = weight + 0, begun = begun, slots = slots, broken = broken, made = made, value = value, owner = owner}
  end
end
