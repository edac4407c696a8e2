-- Release the lock.
--
-- KEYS: the lock, the owner's tombstone, {L}:waits, and the mark where the server must not
--       have forgotten anything (see arrive)
-- ARGV: value, life, always, undo, proposed, to (see release), and with the mark the
--       arguments of gate
-- Returns the first result of release.
-- uses release
local key, mark, time, text, refusal = KEYS[1], KEYS[4], nil, nil, nil
local got = mark and call('MGET', key, KEYS[3], mark) or call('MGET', key, KEYS[3])
if got[2] then
  time = redis.pcall('TIME') -- a failure to hand the lock over must not make the release fail
  if mark then
    text = got[3]
    -- uses gate, serves
    refusal = not serves(text, ARGV[7], ARGV[8], ARGV[9]) and select(2, pcall(gate, mark, ARGV[7], ARGV[8], ARGV[9]))
  end
end
got[3] = nil -- the counter is read where it is needed
local said = release(key, KEYS[2], got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], time, text, ARGV[7], refusal)
return said
