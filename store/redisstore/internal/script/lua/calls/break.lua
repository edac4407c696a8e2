-- Break the lease of an owner: give the lock a value that its owner cannot extend, and
-- leave a tombstone, so that nothing brings the lease back. The lock keeps its TTL. The
-- owner's release ends it (see release). A lock that another owner has is left alone.
--
-- KEYS: the lock, its token counter, the owner's tombstone, and the note about the lease
--       that was broken last
-- ARGV: owner, the token of its lease, how long the tombstone is kept (ms), the
--       note's beginning, which names the lease, the rest of the note, and how long it
--       is kept (ms)
-- Returns {1, the lock's PTTL, its value from now on}, {0} if the owner does not have the
-- lock here, or {2} if it has it with a larger token.
-- uses bury
local held = redis.pcall('GET', KEYS[1])
if type(held) ~= 'string' or string.match(held, '^[^ ]*') ~= ARGV[1] then
  -- The owner may have the lock on other servers, and may heal it here.
  return bury(KEYS[3], ARGV[3]) or {0}
end
if tonumber(redis.pcall('GET', KEYS[2]) or '0') > tonumber(ARGV[2]) then
  return {2}
end
local left = call('PTTL', KEYS[1])
if not string.find(held, '^[^ ]+ {"broken":true[,}]') then
  -- uses flagged
  held = flagged(held, 'broken')
  if left < 0 then
    call('SET', KEYS[1], held)
  else
    call('SET', KEYS[1], held, 'PX', math.max(left, 1))
  end
end
-- For an owner that is not new, {L}:made names the attempt that made the grant.
local made = call('GET', '{' .. KEYS[1] .. '}:made')
local failed = bury(KEYS[3] .. (made and ' ' .. made or ''), ARGV[3])
if failed then
  return failed
end
local note = call('GET', KEYS[4])
if not note or string.sub(note, 1, #ARGV[4]) ~= ARGV[4] then
  call('SET', KEYS[4], ARGV[4] .. ARGV[5], 'PX', ARGV[6])
end
return {1, left, held}
