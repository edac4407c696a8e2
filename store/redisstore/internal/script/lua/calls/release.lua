-- Release the lock.
--
-- KEYS: the lock, {L}:waits, and the mark where the server must not have forgotten anything
--       (see arrive), or in a cluster a key that is never written (see WholeEnd in keys.go)
-- ARGV: how the lease ends (see readEnding), value, and with the mark how it should begin
--       (see gate)
-- Returns 1 if all there was to do is to delete the lock, and otherwise the first result of
-- release.
local key, word, value = KEYS[1], ARGV[1], ARGV[2]
local got, letter = call('MGET', key, KEYS[2]), string.byte(word)
if got[1] == value and not got[2] and (letter == 100 or letter == 68) then
  call('DEL', key)
  return 1
end
-- uses readEnding
local ending, proposed = readEnding(word, key, value)
local wanted, mark, step = ARGV[3], ARGV[3] and KEYS[3], nil
if got[2] then
  local text, print, refusal
  local time = redis.pcall('TIME') -- a failure to hand the lock over must not make the release fail
  if mark then
    -- uses gate, printOf, serves
    text, print = redis.pcall('GET', mark), printOf(wanted)
    if type(text) == 'table' then
      refusal = text
    else
      refusal = not serves(text, wanted) and select(2, pcall(gate, mark, wanted))
    end
  end
  -- uses newStep
  step = newStep(time, proposed, text, print, refusal)
end
-- uses release
local said = release(ending, got, step)
return said
