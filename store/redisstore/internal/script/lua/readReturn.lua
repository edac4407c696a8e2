-- readReturn returns how a lease ends (see readEnding), a proposed token, and the request of the
-- owner that rejoins the queue (see enqueue).
--
-- key, tombstone: the lock and the owner's tombstone
-- args, a: the arguments begin there; see calls/return
local function readReturn(key, tombstone, args, a)
  local ending = {
    key = key, tombstone = tombstone, value = args[a], life = args[a + 1], always = args[a + 2], undo = args[a + 3], to = args[a + 5],
  }
  local value = args[a + 6]
  local wanted = {
    key = key, owner = string.match(value, '^[^ ]+'), wish = value, ttl = args[a + 7], mode = args[a + 8], again = '0', place = args[a + 9],
  }
  return ending, args[a + 4], wanted
end
