-- rejoin releases a lock and enqueues a place behind its new holder, in one step: for a
-- process that will want the lock again at once. A failure to enqueue does not make the
-- release fail; the next request will see it.
--
-- got: as in release, and then the value of the place of the owner that rejoins, and of its
--     tombstone
-- back, place: the owner that rejoins, and its place's key
-- next: value, TTL (ms), mode and place (see acquire) of its request
-- All others are the arguments of release.
-- Returns the first result of release, and that of enqueue.
-- uses enqueue, release
local function rejoin(key, tombstone, got, value, life, always, undo, proposed, to, time, mark, print, refusal, back, place, next)
  local said, held, left, waits = release(key, tombstone, got, value, life, always, undo, proposed, to, time, mark, print, refusal)
  if said.err then
    return said
  end
  if got[6] then
    return {said, {2}}
  end
  local was = got[5]
  if was then -- it may just have been its turn
    was = call('MGET', place)[1]
  end
  local well, stood = pcall(enqueue, key, back, next[1], next[2], next[3], '0', next[4], held, left, waits and got[2], was, time)
  return {said, well and stood or {}}
end
