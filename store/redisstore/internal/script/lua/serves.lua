-- serves reports whether a mark allows a grant to a client with that membership that
-- knows that run of the server, by a fast check that nearly every mark passes. If it
-- returns false, gate decides. The run may be cut short.
local function serves(mark, print, run, counting)
  local wanted = '2 open ' .. print .. ' ' .. run
  return mark and counting == '0' and string.sub(mark, 1, #wanted) == wanted
end
