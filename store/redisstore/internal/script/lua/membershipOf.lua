-- membershipOf returns whose membership the mark, nil if there is none, names for a client: its
-- own, or one of both in a joint configuration (ours), another one (other), or none that keeps the
-- server from becoming one of the client's servers (none). A server that is marked as a single one
-- may become one of several.
local function membershipOf(mark, client)
  if not mark or mark.print == '-' then
    return 'none'
  elseif mark.print == client.print or mark.print == string.sub(client.print, 1, 12) or mark.print == string.sub(client.print, 14) then
    return 'ours'
  elseif not string.find(mark.list, ',', 1, true) and string.find(string.match(client.list, '^[^>]+'), ',', 1, true) then
    return 'none'
  end
  return 'other'
end
