-- Release, and stand in line for the lock again behind whoever has it then: for a
-- process that will want it at once. Nothing comes between. What goes wrong with the
-- place does not make the release fail, and is left for the next request to hear of.
-- KEYS: as of release
-- ARGV: as of release, with two that are empty where there is no mark; then value, TTL
--       (ms) and what there is to know of the place (see acquire) of whoever comes back
-- Returns what release does, and what acquire does.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
-- include ending
local function stand()
  local ARGV = {ARGV[8], ARGV[9], '', '', ARGV[10]}
  local owner = string.match(ARGV[1], '^[^ ]+')
  local found = call('MGET', KEYS[1], name .. 'gone:' .. owner, name .. 'waits', name .. 'place:' .. owner)
  local held, got = found[1], {'', '', '', '', found[3], found[4]}
  if found[2] then
    return {2}
  end
  -- include place
end
local well, stood = pcall(stand)
return {said, well and stood or {}}
