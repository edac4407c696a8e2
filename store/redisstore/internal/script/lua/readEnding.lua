-- readEnding returns how the lease of a mutex ends, and a proposed token:
--   key, tombstone, value: the lock, the owner's tombstone (with the attempt, see readRequest), and
--     the lock's value
--   life: how long the tombstone is kept (ms), 0 for none
--   always: 1 to leave the tombstone in any case, or 0
--   undo: 1 to end only a grant that no other attempt knows about, or 0
--   to: the owner to give way to (see hand); a space stands for nobody
--
-- All but the key and the value are one word, since each word costs a server 0.1 us: a letter, life, always,
-- undo, proposed, the attempt, empty for none, and to, with spaces between them. The
-- letter is d if nothing remains of a lease that has the lock, and otherwise r; it is D or R on a
-- server that must not have forgotten anything.
local function readEnding(word, key, value)
  local life, always, undo, proposed, attempt, to = string.match(word, '^.(%d+) (%d) (%d) (%d+) ([^ ]*) (.*)$')
  local tombstone = '{' .. key .. '}:gone:' .. string.match(value, '^[^ ]*')
  tombstone = attempt == '' and tombstone or tombstone .. ' ' .. attempt
  return {key = key, tombstone = tombstone, value = value, life = life, always = always, undo = undo, to = to}, proposed
end
