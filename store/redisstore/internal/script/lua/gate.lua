-- gate returns why the mark at key forbids grants to a client. The argument wanted is how the
-- client expects a mark to begin that allows them: the version, open, and then, with spaces
-- between them,
--   print: fingerprint of the client's membership, or of both in a joint configuration
--   run: the run of the server as the client knows it (dashes: unknown); it may be cut short
-- A client that counts a quarantine of its own has wait for open, and no mark begins so. The result is {3, how long the quarantine lasts (us), why}, {4, the server's membership},
-- {5, the version of a mark that this client cannot read}, or nil. It changes nothing: the
-- client updates the mark when it connects; see arrive.
-- uses readMark
local function gate(key, wanted)
  local state, print, run = string.match(wanted, '^1 (%S+) (%S+) (%S+)$')
  local mark, version = readMark(call('GET', key))
  if version then
    return {5, version}
  elseif not mark then -- the server was emptied while the client was connected
    return {3, '1', 'emptied'}
  end
  if mark.print ~= '-' and mark.print ~= print and mark.print ~= string.sub(print, 1, 12) and mark.print ~= string.sub(print, 14) then
    return {4, mark.list}
  end
  if mark.run ~= '-' and string.sub(run, 1, 1) ~= '-' and string.sub(mark.run, 1, #run) ~= run then
    return {3, '1', 'replaced'} -- the mark is part of another server's data
  end
  if mark.state ~= 'open' then
    local time = call('TIME')
    local now = time[1] * 1000000 + time[2]
    return {3, string.format('%.0f', math.max(1, mark.opens - now)), mark.why}
  elseif state == 'wait' and mark.why ~= 'declared' then
    return {3, '1', mark.why}
  end
end
