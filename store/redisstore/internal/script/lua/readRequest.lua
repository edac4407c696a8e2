-- readRequest returns what a request for a lock says: TTL, spare, mode, again and place (see
-- acquire). They are one word, since each word costs a server 0.15 us: a, or A on a server that
-- must not have forgotten anything, and the TTL (ms). A new owner that does not wait adds a space
-- and spare unless that is 0. Others add a space, again, mode (- for an empty one), spare, a space
-- and place.
local function readRequest(word)
  local ttl, again, mode, spare, place = string.match(word, '^.(%d+) (%d)(.)(%d+) (.*)$')
  if not ttl then
    ttl, spare = string.match(word, '^.(%d+) ?(%d*)$')
    return ttl, spare == '' and '0' or spare, '', '0', ''
  end
  return ttl, spare, mode ~= '-' and mode or '', again, place
end
