-- readRequest returns what a request for a lock says: TTL, mode, again and place (see acquire).
-- They are one word, since each word costs a server 0.15 us: a, or A on a server that must not
-- have forgotten anything, and the TTL (ms). Unless it is of a new owner that does not wait, the
-- word goes on with a space, again, mode (- for an empty one), a space and place.
local function readRequest(word)
  local ttl, again, mode, place = string.match(word, '^.(%d+) (%d)(.) (.*)$')
  if not ttl then
    return string.match(word, '^.(%d+)$'), '', '0', ''
  end
  return ttl, mode ~= '-' and mode or '', again, place
end
