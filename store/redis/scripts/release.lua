-- Remove the lock if it is ours. If it is not, and its acquire may still be on
-- the way, leave a tombstone that keeps it from taking the lock after all. One
-- that was renewed leaves it in any case: healing may still be on the way.
-- KEYS: the lock, this owner's tombstone
-- ARGV: value, how long the tombstone is kept (ms), 0 for none, 1 to leave it in
--       any case
-- Returns {1} or {0, value of the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local held = redis.call('GET', KEYS[1])
local ours = held == ARGV[1]
if ours then
  redis.call('DEL', KEYS[1])
end
if ARGV[2] ~= '0' and (not ours or ARGV[3] == '1') then
  redis.call('SET', KEYS[2], '', 'PX', ARGV[2])
end
if ours then
  return {1}
end
return {0, held or '', redis.call('PTTL', KEYS[1])}
