-- Release the lock and enqueue a place behind its new holder, in one step: for a process
-- that will want the lock again at once. A failure to enqueue does not make the release
-- fail; the next request will see it.
--
-- KEYS: as in release
-- ARGV: the first six of release; then value, TTL (ms), mode and place (see acquire) of the
--       owner that rejoins; and with the mark the arguments of gate
-- Returns the result of release, and that of enqueue.
-- uses enqueue, release
local key, mark = KEYS[1], KEYS[3]
local name, from, back = '{' .. key .. '}:', string.sub(KEYS[2], #key + 9), string.match(ARGV[7], '^[^ ]+')
local place, refusal = name .. 'place:' .. back, nil
local got = call('MGET', key, name .. 'waits', name .. 'token', name .. 'place:' .. from, place, name .. 'gone:' .. back, mark or key)
local time, text = redis.pcall('TIME'), nil
if mark and got[2] then
  text = got[7]
  -- uses gate, serves
  refusal = not serves(text, ARGV[11], ARGV[12], ARGV[13]) and select(2, pcall(gate, mark, ARGV[11], ARGV[12], ARGV[13]))
end
local said, held, left, waits = release(key, KEYS[2], got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], time, text, ARGV[11], refusal)
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
local well, stood = pcall(enqueue, key, back, ARGV[7], ARGV[8], ARGV[9], '0', ARGV[10], held, left, waits and got[2], was, time)
return {said, well and stood or {}}
