-- join writes the client's membership into a mark that names none, or that names a single
-- server: a client of that server alone must not keep it when others count it among
-- several. From a joint configuration it takes the first one, until Replace.
local function join(mark, client)
  local first = string.match(client.list, '^[^>]+')
  local alone = mark.list ~= '-' and not string.find(mark.list, ',', 1, true) and string.find(first, ',', 1, true)
  if mark.print == '-' or alone then
    mark.print, mark.list = string.match(client.print, '^[^>]+'), first
  elseif mark.print == client.print then
    mark.list = client.list
  end
end
