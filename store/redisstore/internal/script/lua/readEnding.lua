-- readEnding returns how a lease ends: life, always, undo, proposed and to (see release), and its
-- tombstone. They are one word, since each word costs a server 0.1 us: a letter, life, always,
-- undo, proposed, the attempt (see acquire), empty for none, and to, with spaces between them. The
-- letter is d if nothing remains of a lease that has the lock, and otherwise r; it is D or R on a
-- server that must not have forgotten anything. The argument value is the lock's.
local function readEnding(word, key, value)
  local life, always, undo, proposed, attempt, to = string.match(word, '^.(%d+) (%d) (%d) (%d+) ([^ ]*) (.*)$')
  local tombstone = '{' .. key .. '}:gone:' .. string.match(value, '^[^ ]*')
  return life, always, undo, proposed, to, attempt == '' and tombstone or tombstone .. ' ' .. attempt
end
