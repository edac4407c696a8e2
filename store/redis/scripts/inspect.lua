-- Look at a lock.
-- KEYS: the lock, its token counter, the mark (see arrive) where there is one
-- Returns {1, token, quarantine, why} for a free lock, {0, value of the holder,
-- PTTL, token, quarantine, why}, with how long the quarantine still lasts (us).
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2]) or '0'
local left, why = '0', ''
if KEYS[3] then
  local time = redis.call('TIME')
  local opens
  opens, why = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+) %S+ %S+ (%S+)')
  if opens then
    left = string.format('%.0f', math.max(0, opens - (time[1] * 1000000 + time[2])))
  end
end
if not held then
  return {1, last, left, why or ''}
end
return {0, held, redis.call('PTTL', KEYS[1]), last, left, why or ''}
