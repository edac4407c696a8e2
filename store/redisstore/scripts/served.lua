-- serves says whether a mark lets a server grant locks to a client with that list, which
-- knows that run of the server: as nearly every mark does. If it says no, gate knows more.
-- The run may be cut short.
local function serves(mark, print, run, counting)
  local wanted = '2 open ' .. print .. ' ' .. run
  return mark and counting == '0' and string.sub(mark, 1, #wanted) == wanted
end
