-- Read a lock and the queue of its waiters.
--
-- KEYS: the lock, its token counter, the mark (see arrive) if there is one
-- ARGV: how many places to return at most
-- Returns {1, token, quarantine, why, queue, note} for a free lock, or {0, value of the
-- holder, PTTL, token, quarantine, why, queue, note}. The note is about the lease that was
-- broken last (see break), or empty. The quarantine is how long it still lasts (us).
-- The queue has two values per waiter: the value that its lock will have, and its place's
-- PTTL.
-- uses places, quarantineLeft
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then -- the key is not a string
  -- uses redisson
  local holder = redisson(KEYS[1])
  if not holder then
    return held
  end
  held = holder
end
local last = call('GET', KEYS[2]) or '0'
local left, why = quarantineLeft(KEYS[3])
local queue = places('{' .. KEYS[1] .. '}:', ARGV[1])
local note = redis.pcall('GET', '{' .. KEYS[1] .. '}:broken')
note = type(note) == 'string' and note or ''
if not held then
  return {1, last, left, why, queue, note}
end
local pttl
if string.find(held, '^ [sr]%d+ %d+') then
  -- uses recordText
  held, pttl = recordText(KEYS[1], held)
  if not held then
    return {err = 'TRYAGAIN the holders are on another server'}
  end
end
return {0, held, pttl or call('PTTL', KEYS[1]), last, left, why, queue, note}
