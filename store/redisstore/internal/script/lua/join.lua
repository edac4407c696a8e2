-- join writes the client's membership into a mark that names none, or that names a single
-- server which nobody uses alone any more. From a joint configuration it takes the first one,
-- until Replace.
-- uses membershipOf
local function join(mark, client)
  if membershipOf(mark, client) == 'none' then
    mark.print, mark.list = string.match(client.print, '^[^>]+'), string.match(client.list, '^[^>]+')
  elseif mark.print == client.print then
    mark.list = client.list
  end
end
