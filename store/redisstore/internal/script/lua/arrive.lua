-- Update the mark for a client that has a new connection to this server. The server may
-- have forgotten leases since the last client connected: then it grants nothing until
-- those have ended. A quarantine that is over ends here.
--
-- KEYS: the mark, and the token counter of the last lock that the client was granted here
-- ARGV: the client's membership as a fingerprint and as text; the server's run ID and
--       replication ID as the client read them, - if unknown; '1' if the server was a
--       replica once; quarantine (us); the client's wall clock (us); whether the server
--       appends every write before it answers (always, never, unknown; asserted; unasked
--       on a connection that is not new); the token that the client was granted last, or
--       '0'
-- Returns {1, how long it still grants nothing (us), why, the longest quarantine (us),
-- fingerprint of its membership, fingerprint of the membership which that one replaced},
-- or {5, the version of a mark that this client cannot read}.
if #KEYS == 0 then return 0 end -- called only to load the script
-- include mark

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

-- remembers reports whether a new run of the server has all the data of the run in the
-- mark. By both clocks, every lease that has not ended must have been written while all
-- writers saw every write go to the file first. No grant that the client knows of may be
-- missing.
local function remembers(mark, client, now)
  return mark.durable > 0 and mark.durable + mark.longest <= now and mark.clientDurable + mark.longest <= client.wall
    and (client.durable == 'always' or client.durable == 'asserted')
    and not client.promoted and client.counter >= client.seen
end

-- forgot returns why the server may have forgotten leases; nil if it has not.
local function forgot(mark, client, now)
  if client.run == '-' then
    return nil
  elseif mark.run ~= client.run then
    if not remembers(mark, client, now) then
      return client.promoted and 'replaced' or 'restarted'
    end
  elseif mark.replication ~= '-' and client.replication ~= '-' and mark.replication ~= client.replication and client.promoted then
    return 'replaced'
  elseif mark.why ~= 'declared' and client.counter < client.seen then
    return 'behind'
  end
end

-- count continues a quarantine, which is now longer by grown. A clock that was set back
-- cannot make it last longer than a full quarantine from now. If the client's clock is
-- behind, the server's clock counts a full quarantine too, but only once.
local function count(mark, client, now, grown)
  mark.opens, mark.clientOpens = mark.opens + grown, mark.clientOpens + grown
  mark.opens = math.min(mark.opens, now + mark.longest)
  if mark.clientOpens > client.wall + mark.longest then
    mark.clientOpens = client.wall + mark.longest
    if mark.lengthened == '0' then
      mark.opens, mark.lengthened = now + mark.longest, '1'
    end
  end
  local over = mark.opens <= now and mark.clientOpens <= client.wall
  mark.state = over and 'open' or 'shut'
end

local function arrive(mark, client, now)
  local why
  if not mark then -- nothing is known: the server may just have been emptied
    why = 'empty'
    mark = {state = 'shut', print = '-', run = '-', replication = '-', opens = 0, clientOpens = 0, why = '-', longest = 0, durable = 0, clientDurable = 0, lengthened = '0', before = '-', told = 0, list = '-'}
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
  elseif mark.state == 'shut' or grown > 0 and mark.opens > 0 then
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
    mark.run = client.run
  end
  if client.replication ~= '-' then
    mark.replication = client.replication
  end
  return mark
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local text = redis.call('GET', KEYS[1])
local mark, version = readMark(text)
if version then
  return {5, version}
end
local client = {
  print = ARGV[1], list = ARGV[2], run = ARGV[3], replication = ARGV[4], promoted = ARGV[5] == '1',
  quarantine = tonumber(ARGV[6]), wall = tonumber(ARGV[7]), durable = ARGV[8], seen = tonumber(ARGV[9]),
  counter = tonumber(redis.call('MGET', KEYS[2])[1] or '0') or 0,
}
local list = mark and mark.list
mark = arrive(mark, client, now)
writeMark(KEYS[1], mark, text)
if mark.list ~= list and string.find(mark.list, ',', 1, true) then
  -- include tell
end
local left = 0
if mark.state == 'shut' then
  left = math.max(1, mark.opens - now, mark.clientOpens - client.wall)
end
return {1, string.format('%.0f', left), mark.why, string.format('%.0f', mark.longest), mark.print, mark.before}
