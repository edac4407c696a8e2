-- Make the mark name another membership.
--
-- KEYS: the mark
-- ARGV: the membership's fingerprint; the membership; the fingerprint of a membership that
--       must not be replaced any more; the only one that may be replaced, empty for any;
--       the fingerprint of the membership before, if a majority of it was updated, or empty
-- Returns {1, the fingerprint in the mark now, that of the membership before}, {0} if
-- there is no mark, or {5, the version of a mark that this client cannot read}.
if #KEYS == 0 then return 0 end -- called only to load the script
-- include mark
local text = redis.call('GET', KEYS[1])
local mark, version = readMark(text)
if version then
  return {5, version}
elseif not mark then
  return {0}
end
if mark.print == ARGV[3] or ARGV[4] ~= '' and mark.print ~= ARGV[4] then
  return {1, mark.print, mark.before}
end
local list = mark.list
if ARGV[5] == '' and mark.print ~= ARGV[1] then -- the mark records another replacement
  mark.before, mark.told = '-', 0
elseif ARGV[5] ~= '' and mark.before ~= ARGV[5] then
  local time = redis.call('TIME')
  mark.before, mark.told = ARGV[5], time[1] * 1000000 + time[2]
end
mark.print, mark.list = ARGV[1], ARGV[2]
writeMark(KEYS[1], mark, text)
if mark.list ~= list then
  -- include tell
end
return {1, mark.print, mark.before}
