-- forgot returns why the server may have forgotten leases since the last quarantine began;
-- nil if it has not. A grant's token is no smaller than the server's clock was. One from
-- before that quarantine may be missing: its lease ended in the quarantine, and every
-- client that had such a grant would begin another one. A server that another one stood in for
-- lacks the leases that were granted there: the client saw another mark at this address. A mark
-- that a client wrote over an old connection has no replication ID: if the server was promoted, that may
-- have been since.
-- uses remembers
local function forgot(mark, client, now)
  if client.run == '-' then
    return nil
  elseif mark.run ~= client.run then
    if not remembers(mark, client, now) then
      return client.promoted and 'replaced' or 'restarted'
    end
  elseif client.replication ~= '-' and mark.replication ~= client.replication and client.promoted and (mark.replication ~= '-' or mark.why ~= 'declared') then
    return 'replaced'
  elseif mark.why ~= 'declared' and client.counter < client.seen and client.seen >= mark.opens - mark.longest then
    return 'behind'
  end
  local began = mark.why == 'declared' and mark.opens or mark.opens - mark.longest
  if mark.origin ~= '-' and client.origin ~= '-' and mark.origin ~= client.origin and began < now - client.ago then
    return 'returned'
  end
end
