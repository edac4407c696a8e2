-- readWanted reads a request for a lock that several can hold. Its fields are kind, weight (see
-- readRecord), value, ttl (ms), slots (see calls/admit), and mode, again and place (see acquire).
-- key, tombstone: of the lock and of the owner
-- args, a: ARGV, and the place before the request
local function readWanted(key, tombstone, args, a)
  return {
    key = key, tombstone = tombstone, kind = args[a + 1], weight = args[a + 2] + 0, value = args[a + 3], ttl = args[a + 4],
    proposed = args[a + 5], mode = args[a + 6], again = args[a + 7], slots = args[a + 8], place = args[a + 9],
  }
end
