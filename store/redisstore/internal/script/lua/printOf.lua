-- printOf returns the fingerprint of the client's membership in how it expects a mark to begin;
-- see gate.
local function printOf(wanted)
  return wanted and string.match(wanted, '^%S+ %S+ (%S+)')
end
