-- rejoin releases a lock and enqueues a place behind its new holder, in one step: for a
-- process that will want the lock again at once. A failure to enqueue does not make the
-- release fail; the next request will see it.
--
-- got: as in release, and then the value of the place of the owner that rejoins, and of its
--     tombstone
-- ending, step: see release
-- wanted: its request; see enqueue
--
-- Returns the first result of release, and that of enqueue.
-- uses enqueue, release
local function rejoin(ending, wanted, got, step)
  local said, held, left, waits = release(ending, got, step)
  if said.err then
    return said
  end
  if got[6] then
    return {said, {2}}
  end
  local was = got[5]
  if was then -- it may just have been its turn
    was = call('MGET', '{' .. wanted.key .. '}:place:' .. wanted.owner)[1]
  end
  local well, stood = pcall(enqueue, wanted, held, left, waits and got[2], was, step.time)
  return {said, well and stood or {}}
end
