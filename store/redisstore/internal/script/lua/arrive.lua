-- arrive returns the mark, nil if there was none, as it is after a client with a new
-- connection to this server has come, at the server's time now (us). The server may have
-- forgotten leases since the last client connected: then it grants nothing until those have
-- ended. A quarantine that is over ends here.
-- uses count, forgot, join
local function arrive(mark, client, now)
  local why
  if not mark then -- nothing is known: the server may just have been emptied
    why = 'empty'
    mark = {state = 'shut', print = '-', run = '-', replication = '-', opens = 0, clientOpens = 0, why = '-', longest = 0, durable = 0, clientDurable = 0, lengthened = '0', before = '-', told = 0, origin = '-', list = '-'}
  end
  join(mark, client)
  -- The server may also have forgotten a longer lease than other clients grant.
  local grown = math.max(0, client.quarantine - mark.longest)
  mark.longest = mark.longest + grown
  why = why or forgot(mark, client, now)
  if why then
    mark.state, mark.why, mark.lengthened = 'shut', why, '0'
    mark.opens, mark.clientOpens = now + mark.longest, client.wall + mark.longest
    mark.durable, mark.clientDurable = 0, 0
  elseif mark.state == 'shut' or grown > 0 and mark.opens > 0 and mark.why ~= 'declared' then
    count(mark, client, now, grown)
  end
  if client.durable == 'always' then
    if mark.durable == 0 then
      mark.durable, mark.clientDurable = now, client.wall
    end
  elseif client.durable ~= 'asserted' and client.durable ~= 'unasked' then -- a client that cannot read the setting withdraws the claim
    mark.durable, mark.clientDurable = 0, 0
  end
  if client.run ~= '-' then
    if mark.origin == '-' or why and mark.run ~= client.run then
      mark.origin = string.sub(client.run, 1, 12)
    end
    mark.run = client.run
  end
  if client.replication ~= '-' then
    mark.replication = client.replication
  end
  return mark
end
