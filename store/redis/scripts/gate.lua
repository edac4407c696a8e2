-- Whether a server that must not have forgotten anything may grant, going by its
-- mark (see arrive), and to a client with that list of nodes. Returns {3, how
-- long the quarantine still lasts (us), why}, {4, the list that the server is one
-- of}, or nothing.
local function gate(key, quarantine, prints, now)
  local mark = redis.call('GET', key)
  local opens, print, why, list = string.match(mark or '', '^(%d+) (%S+) %S+ (%S+) (%S+)$')
  if not opens then -- somebody has emptied it while we were here
    opens, print, why = now + quarantine, prints, 'emptied'
    redis.call('SET', key, string.format('%016.0f %s - emptied -', opens, prints))
  end
  local one, other = string.sub(prints, 1, 12), string.sub(prints, 14)
  if print ~= '-' and print ~= prints and print ~= one and print ~= other then
    return {4, list}
  end
  if now < tonumber(opens) then
    return {3, string.format('%.0f', opens - now), why}
  end
end
