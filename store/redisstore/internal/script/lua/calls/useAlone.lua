-- Note that a client uses this server alone, so that it does not become one of several meanwhile.
--
-- KEYS: the mark
-- ARGV: how long the leases of this client may last from now on at most (ms); who it is
-- Returns {1}, {4, the server's membership} if it is one of several, or {5, the version of a mark
-- that this client cannot read}.
-- uses readMark
local text = call('GET', KEYS[1])
local mark, version = readMark(text)
if version then
  return {5, version}
elseif mark and string.find(mark.list, ',', 1, true) then
  return {4, mark.list}
end
if call('PTTL', 'leasehold:alone') < tonumber(ARGV[1]) then
  call('SET', 'leasehold:alone', ARGV[2], 'PX', ARGV[1])
end
return {1}
