-- setMembership makes the mark at key name the membership list, whose fingerprint is print,
-- unless the mark names the one with the fingerprint final, or, if only is not empty, another
-- than that one. If a majority of the membership before was updated, its fingerprint is
-- before; otherwise that is empty.
-- Returns {1, the fingerprint in the mark now, that of the membership before}, {0} if
-- there is no mark, or {5, the version of a mark that this client cannot read}.
-- uses publishChange, readMark, writeMark
local function setMembership(key, print, list, final, only, before)
  local text = call('GET', key)
  local mark, version = readMark(text)
  if version then
    return {5, version}
  elseif not mark then
    return {0}
  end
  if mark.print == final or only ~= '' and mark.print ~= only then
    return {1, mark.print, mark.before}
  end
  local was = mark.list
  if before == '' and mark.print ~= print then -- the mark records another replacement
    mark.before, mark.told = '-', 0
  elseif before ~= '' and mark.before ~= before then
    local time = call('TIME')
    mark.before, mark.told = before, time[1] * 1000000 + time[2]
  end
  mark.print, mark.list = print, list
  writeMark(key, mark, text)
  if mark.list ~= was then
    publishChange()
  end
  return {1, mark.print, mark.before}
end
