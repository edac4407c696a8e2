-- A client has a new connection to this server, which may have forgotten leases since
-- anybody was here last: then it grants nothing until those have ended. A quarantine
-- that is over ends here.
-- KEYS: the mark, and the token counter of the last lock that the client was granted
--       here
-- ARGV: the client's list of nodes as a fingerprint and as text; the server's run ID and
--       replication ID as the client reads them, - for unknown; '1' if the server was a
--       replica once; quarantine (us); the client's wall clock (us); whether the server
--       appends every write before it answers (always, never, unknown; asserted, or unasked
--       on a connection that is not new); the token that the client was granted last, '0' for none
-- Returns {1, how long it still grants nothing (us), why, the longest quarantine (us),
-- fingerprint of its list, fingerprint of the list that one replaced}, or {5, the version
-- of a mark that we can not read}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
-- include mark

-- join has the mark name the client's list where it names none, or one server only:
-- a client of that one alone is not left with it beside those who count it among
-- several. Of two lists it is the first, until that is replaced.
local function join(mark, client)
  local first = string.match(client.list, '^[^>]+')
  local alone = mark.list ~= '-' and not string.find(mark.list, ',', 1, true) and string.find(first, ',', 1, true)
  if mark.print == '-' or alone then
    mark.print, mark.list = string.match(client.print, '^[^>]+'), first
  elseif mark.print == client.print then
    mark.list = client.list
  end
end

-- remembers says whether a new run of the server has all that the one in the mark had:
-- every lease that has not ended yet was written while all writers saw every write go to
-- the file first, by both clocks; and no grant that the client knows of is missing.
local function remembers(mark, client, now)
  return mark.durable > 0 and mark.durable + mark.longest <= now and mark.clientDurable + mark.longest <= client.wall
    and (client.durable == 'always' or client.durable == 'asserted')
    and not client.promoted and client.counter >= client.seen
end

-- forgot says why the server may have forgotten leases, nil if it has not.
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

-- count goes on with a quarantine that has begun, which is now longer by grown. No clock
-- that was set back makes it last longer than a whole one from now; and where it is the
-- client's clock that is behind, the server's has to count a whole one too, once.
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
  if not mark then -- nothing is known: it may have been emptied just now
    why = 'empty'
    mark = {state = 'shut', print = '-', run = '-', replication = '-', opens = 0, clientOpens = 0, why = '-', longest = 0, durable = 0, clientDurable = 0, lengthened = '0', before = '-', told = 0, list = '-'}
  end
  join(mark, client)
  -- A longer lease than other clients grant may have been forgotten as well.
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
  elseif client.durable ~= 'asserted' and client.durable ~= 'unasked' then -- who can not see it does not claim it
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
