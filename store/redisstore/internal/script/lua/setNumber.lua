-- setNumber sets the number of permits for the resize that has the seat, and keeps it, also for a
-- lock that nobody uses. Grants and waiters fare as in renumber. The number before stays one of the
-- server's for renewals for as long as the seat, which begins anew.
--
-- keep: how long the number is kept (ms). The other arguments are those of takeSeat.
--
-- Returns {1}, {0} for a resize that has not got the seat, or {6, kind in use, value of a holder or
-- waiter} as takeSeat does.
-- uses firstUser, renumber, writeRecord
local function setNumber(key, record, who, from, to, ttl, keep, ms)
  if not record.seat or record.seat.who ~= who then
    return {0}
  end
  local name = '{' .. key .. '}:'
  local value, entry = firstUser(name, record)
  if record.kind ~= from and record.kind ~= to and (value or record.kept) then
    return {6, record.kind, value or ''}
  end
  record.kept = math.max(record.kept or 0, ms + keep)
  record.seat.ends, record.seat.set = ms + ttl, '1'
  if record.kind == to then
    writeRecord(key, record, ms)
  else
    renumber(key, name, record, entry, to, ms)
  end
  return {1}
end
