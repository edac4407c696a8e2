-- remembers reports whether a new run of the server has all the data of the run in the
-- mark. By both clocks, every lease that has not ended must have been written while all
-- writers saw every write go to the file first. No grant that the client knows of may be
-- missing.
local function remembers(mark, client, now)
  return mark.durable > 0 and mark.durable + mark.longest <= now and mark.clientDurable + mark.longest <= client.wall
    and (client.durable == 'always' or client.durable == 'asserted')
    and not client.promoted and client.counter >= client.seen
end
