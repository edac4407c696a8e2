-- findHold returns the grant of an owner in a record; nothing if it has none.
-- uses readHold
local function findHold(record, owner)
  return readHold(call('HMGET', record.held, owner)[1], owner)
end
