-- Release, and stand in line for the lock again behind whoever has it then: for a
-- process that will want it at once. Nothing comes between. What goes wrong with the
-- place does not make the release fail, and is left for the next request to hear of.
-- KEYS: as of release
-- ARGV: the first five of release; then value, TTL (ms) and what there is to know of the
--       place (see acquire) of whoever comes back; and with the mark what gate has to know
-- Returns what release does, and what acquire does.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
-- All at once, as in acquire. What the release changes of that, ending and hand keep true,
-- but for the place of who comes back.
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
  if was then -- unless it has just been its turn
    was = call('MGET', place)[1]
  end
  -- include place
end
local well, stood = pcall(stand)
return {said, well and stood or {}}
