-- Say of which list of nodes this server is one from now on.
-- KEYS: the mark (see arrive)
-- ARGV: the list's fingerprint, the list, fingerprint of the list that is not to
--       be replaced any more
-- Returns the fingerprint that stands there now, or nothing if there is no mark.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local mark = redis.call('GET', KEYS[1])
local opens, print, run, why = string.match(mark or '', '^(%d+) (%S+) (%S+) (%S+)')
if not opens then
  return false
end
if print == ARGV[3] then
  return print
end
redis.call('SET', KEYS[1], table.concat({opens, ARGV[1], run, why, ARGV[2]}, ' '))
-- include tell
return ARGV[1]
