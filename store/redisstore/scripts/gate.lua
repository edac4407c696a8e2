-- include mark
-- gate says why a server may not grant locks, going by its mark, to a client with that
-- list of nodes (or with both, while one replaces the other), that knows that run of the
-- server (dashes: none), and that counts a quarantine of its own if counting is '1'.
-- Returns {3, how long the quarantine lasts (us), why}, {4, the list that the server is
-- one of}, {5, the version of a mark that we can not read}, or nil.
-- It changes nothing: the client sees to the mark when it arrives; see arrive.
local function gate(key, print, run, counting, now)
  local mark, version = readMark(redis.call('GET', key))
  if version then
    return {5, version}
  elseif not mark then -- somebody emptied the server while we were here
    return {3, '1', 'emptied'}
  end
  if mark.print ~= '-' and mark.print ~= print and mark.print ~= string.sub(print, 1, 12) and mark.print ~= string.sub(print, 14) then
    return {4, mark.list}
  end
  if mark.run ~= '-' and string.sub(run, 1, 1) ~= '-' and string.sub(mark.run, 1, #run) ~= run then
    return {3, '1', 'replaced'} -- the mark came here with the data of another server
  end
  if mark.state ~= 'open' then
    return {3, string.format('%.0f', math.max(1, mark.opens - now)), mark.why}
  elseif counting == '1' and mark.why ~= 'declared' then
    return {3, '1', mark.why}
  end
end
