-- readWish returns what the owner of a place in the queue wants, as a table with the fields
-- kind (empty for a mutex), weight, slots (see calls/admit), made (the owner's attempt, or empty)
-- and value; nil if the text is not a place. The value in the place of a lock that several can
-- hold is a space, the kind (and on one of several servers a colon and the slots), the weight and
-- the attempt, with spaces between them, a space, and the holder's value.
-- uses readPlace
local function readWish(text)
  local _, _, _, _, lock, _, _, value = readPlace(text, true)
  if lock == 'm' then
    return {kind = '', value = value}
  end
  local _, at, kind, slots, weight, made = string.find(value or '', '^ ([sr]%d+):?([^ ]*) (%d+) ([^ ]*) ')
  if at then
    return {kind = kind, slots = slots, weight = weight + 0, made = made, value = string.sub(value, at + 1)}
  end
end
