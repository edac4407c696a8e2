-- checkMembership returns why a mark does not let a client renew its leases, or nil: {4, the
-- server's membership}, or {5, the version of a mark that this client cannot read}. The
-- argument text is the mark's, and print is the fingerprint of the client's membership. A
-- lease that was granted may be renewed in quarantine, and on a server that was emptied.
local function checkMembership(text, print)
  local got, list = string.match(text or '', '^1 %S+ (%S+) .* (%S+)$')
  if text and not got then
    -- uses readMark
    local _, version = readMark(text)
    return {5, version}
  end
  if got and got ~= print and got ~= '-' and got ~= string.sub(print, 1, 12) and got ~= string.sub(print, 14) then
    return {4, list}
  end
end
