-- readRequest returns a request for a lock:
--   key, counter, tombstone: the lock, its token counter and the owner's tombstone. For an owner
--     that is not new, the tombstone's name ends in a space and the attempt.
--   value, ttl (ms): of the lock
--   proposed: a token
--   mode: empty for a request that does not wait; 0 for one that waits while the lock is
--     held, 1 for one that wants a place even if nobody has the lock, 2 for one that wants
--     a place only behind a holder
--   again: 1 for an owner that has asked before, or 0
--   place: no-push flag, rank (16 digits), and the fields of its place from the stamp to the
--     channel (see readPlace)
--
-- keys, k: its three keys begin there
-- args, a: its arguments begin there. The first is one word, since each word costs a server 0.15
--     us: a, or A on a server that must not have forgotten anything, and the TTL. Unless it is of
--     a new owner that does not wait, the word goes on with a space, again, mode (- for an empty
--     one), a space and place. The value and the proposed token follow.
local function readRequest(keys, k, args, a)
  local ttl, again, mode, place = string.match(args[a], '^.(%d+) (%d)(.) (.*)$')
  if not ttl then
    ttl, again, mode, place = string.match(args[a], '^.(%d+)$'), '0', '', ''
  elseif mode == '-' then
    mode = ''
  end
  return {
    key = keys[k], counter = keys[k + 1], tombstone = keys[k + 2],
    value = args[a + 1], ttl = ttl, proposed = args[a + 2], mode = mode, again = again, place = place,
  }
end
