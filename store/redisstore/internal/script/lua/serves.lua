-- serves reports whether a mark allows a grant to a client, by a fast check that nearly every
-- mark passes. The argument wanted is how the client expects the mark to begin (see gate). If
-- it returns false, gate decides.
local function serves(mark, wanted)
  return mark and string.find(mark, wanted, 1, true) == 1
end
