-- Delete the lock if it is ours. If it is not, and its acquire may still arrive, leave a
-- tombstone that prevents it from taking the lock after all. A lease that was renewed
-- always leaves a tombstone: a heal may still arrive. The owner's place is removed, and
-- the lock goes to the first waiter; a failure of this does not make the release fail. If
-- the release gives way to another owner, that one is put first; if that owner does not
-- wait here, the lock goes to nobody.
--
-- KEYS: the lock, the owner's tombstone (with the attempt, see acquire), and the mark where
--       the server must not have forgotten anything (see arrive)
-- ARGV: value, how long the tombstone is kept (ms, 0 for none), 1 to leave it in any case
--       or 0, followed by u to end only a grant that no other attempt knows about, a
--       token proposed for the next holder, the owner to give way to (a space: nobody;
--       empty: the first waiter), and with the mark the arguments of gate, as in acquire
-- Returns {1} or {0, value of the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called only to load the script
local call, name = redis.call, '{' .. KEYS[1] .. '}:'
local got = KEYS[3] and call('MGET', KEYS[1], name .. 'waits', KEYS[3]) or call('MGET', KEYS[1], name .. 'waits')
local counter, mine -- read where they are needed
local from = got[2] and string.sub(KEYS[2], #KEYS[1] + 9)
-- include ending
return said
