-- Release the lock and enqueue a place behind its new holder, in one step: for a process
-- that will want the lock again at once. A failure to enqueue does not make the release
-- fail; the next request will see it.
--
-- KEYS: as in release
-- ARGV: the first five of release; then value, TTL (ms) and place (see acquire) of the
--       owner that rejoins; and with the mark the arguments of gate
-- Returns the result of release, and that of acquire.
if #KEYS == 0 then return 0 end -- called only to load the script
-- Read everything in one call, as in acquire. The code of ending and hand keeps these
-- values up to date, except the place of the owner that rejoins.
local call, name = redis.call, '{' .. KEYS[1] .. '}:'
local from, back = string.sub(KEYS[2], #KEYS[1] + 9), string.match(ARGV[6], '^[^ ]+')
local place = name .. 'place:' .. back
local got = call('MGET', KEYS[1], name .. 'waits', KEYS[3] or KEYS[1], name .. 'token', name .. 'place:' .. from, place, name .. 'gone:' .. back)
local counter, mine = got[4], got[5]
-- include ending
local function stand()
  local ARGV = {ARGV[6], ARGV[7], '', '', ARGV[8]}
  local owner, waits, was = back, got[2], got[6]
  if got[7] then
    return {2}
  end
  if was then -- it may just have been its turn
    was = call('MGET', place)[1]
  end
  -- include place
end
local well, stood = pcall(stand)
return {said, well and stood or {}}
