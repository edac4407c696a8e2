-- Update the mark for a client that has a new connection to this server.
--
-- KEYS: the mark, and the token counter of the last lock that the client was granted here
-- ARGV: the client's membership as a fingerprint and as text; the server's run ID and
--       replication ID as the client read them, - if unknown; '1' if the server was a
--       replica once; quarantine (us); the client's wall clock (us); whether the server
--       appends every write before it answers (always, never, unknown; asserted; unasked
--       on a connection that is not new); the token that the client was granted last, or
--       '0'; whether a server that names no membership, or a single server, may become one
--       of the client's several (may, not), or is all that the client has (alone); the
--       origin of the mark that the client saw at this address before, - if none, and how
--       long ago (us)
-- Returns {1, how long it still grants nothing (us), why, the longest quarantine (us),
-- fingerprint of its membership, fingerprint of the membership which that one replaced, the
-- mark's origin}. Otherwise nothing is changed: {4, the server's membership, its fingerprint,
-- and that of the one before} if that is another one, {5, the version of a mark that this
-- client cannot read}, {6, the client that uses the server alone}, or {7} if it may not become one
-- of several.
-- uses arrive, membershipOf, publishChange, readMark, writeMark
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local text = call('GET', KEYS[1])
local mark, version = readMark(text)
if version then
  return {5, version}
end
local client = {
  print = ARGV[1], list = ARGV[2], run = ARGV[3], replication = ARGV[4], promoted = ARGV[5] == '1',
  quarantine = tonumber(ARGV[6]), wall = tonumber(ARGV[7]), durable = ARGV[8], seen = tonumber(ARGV[9]),
  counter = tonumber(call('MGET', KEYS[2])[1] or '0') or 0,
  origin = ARGV[11], ago = tonumber(ARGV[12]),
}
local list = mark and mark.list
local whose = membershipOf(mark, client)
if whose == 'other' then
  return {4, mark.list, mark.print, mark.before}
elseif whose == 'none' and ARGV[10] ~= 'alone' then
  local user = redis.pcall('GET', 'leasehold:alone')
  if type(user) == 'string' then
    return {6, user}
  elseif ARGV[10] == 'not' then
    return {7}
  end
end
mark = arrive(mark, client, now)
writeMark(KEYS[1], mark, text)
if mark.list ~= list and string.find(mark.list, ',', 1, true) then
  publishChange()
end
local left = 0
if mark.state == 'shut' then
  left = math.max(1, mark.opens - now, mark.clientOpens - client.wall)
end
return {1, string.format('%.0f', left), mark.why, string.format('%.0f', mark.longest), mark.print, mark.before, mark.origin}
