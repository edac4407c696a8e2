-- readPlace reads a place, which is the key {L}:place:OWNER. It lasts for the TTL unless it
-- is refreshed, and has these fields; place in place.go is the request's form of it.
--   no-push flag (1: the client cannot receive pushes; or 0), when the place ends (ms, 13
--   digits), ticket (16 digits), stamp, lock (m: a mutex; k: one that several can hold, so that
--   the steps of a mutex hand nothing to it), flags (b: only notify it that the lock is
--   free; then g: grant it the lock only after a check of the mark, followed by the
--   fingerprint of its client's membership; or -), channel, and then the value that its
--   lock will have
-- The first three have fixed widths. If whole is set, all fields are returned in that
-- order.
local function readPlace(text, whole)
  local sub, find = string.sub, string.find
  local noPush, ends, ticket = sub(text, 1, 1), tonumber(sub(text, 2, 14)), sub(text, 15, 30)
  if not whole then
    return noPush, ends, ticket
  end
  -- A pattern that matches all of this takes twice as long.
  local a = #text > 31 and find(text, ' ', 32, true)
  local b = a and find(text, ' ', a + 1, true)
  local c = b and find(text, ' ', b + 1, true)
  local d = c and find(text, ' ', c + 1, true)
  if d then
    return noPush, ends, ticket, sub(text, 32, a - 1), sub(text, a + 1, b - 1), sub(text, b + 1, c - 1), sub(text, c + 1, d - 1), sub(text, d + 1)
  end
end
