-- Remove the lock if it is ours. If it is not, and its acquire may still be on
-- the way, leave a tombstone that keeps it from taking the lock after all. One
-- that was renewed leaves it in any case: healing may still be on the way.
-- The owner's place in the line is given up, and a lock that is free goes to the
-- first of those who wait, which never makes the release fail. Or it goes to the one
-- that is given way to, who is put first for that; and if that one does not wait
-- here, to nobody.
-- KEYS: the lock, this owner's tombstone (with the attempt, see acquire), and the mark where the server must not have
--       forgotten anything (see arrive)
-- ARGV: value, how long the tombstone is kept (ms), 0 for none, 1 to leave it in
--       any case and 0 not to, followed by u if only a grant is to be ended that no
--       other attempt knows of, a token proposed for the next, who is given way to (nobody: a space;
--       empty: whoever is next), and with the mark what gate has to know, as in acquire
-- Returns {1} or {0, value of the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local call, name = redis.call, '{' .. KEYS[1] .. '}:'
local got = KEYS[3] and call('MGET', KEYS[1], name .. 'waits', KEYS[3]) or call('MGET', KEYS[1], name .. 'waits')
local counter, mine -- are looked for where they are needed
local from = got[2] and string.sub(KEYS[2], #KEYS[1] + 9)
-- include ending
return said
