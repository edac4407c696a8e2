-- readRequest returns how a request for a lock differs from that of a new owner that does not
-- wait: spare, mode, again and place (see acquire). They are one word, since each word costs a
-- server 0.1 us: a, or A on a server that must not have forgotten anything; and then, if there is
-- a difference, again, mode (- for an empty one), spare, a space and place.
local function readRequest(word)
  local again, mode, spare, place = string.match(word, '^.(%d)(.)(%d+) (.*)$')
  return spare or '0', mode ~= '-' and mode or '', again or '0', place or ''
end
