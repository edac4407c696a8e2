-- Release the lock and rejoin its queue.
--
-- KEYS: the lock, the owner's tombstone, {L}:waits, and the mark where the server must not have
--       forgotten anything (see arrive)
-- ARGV: value, life, always, undo, proposed, to (see readEnding); then value, TTL (ms), mode and
--       place (see readRequest) of the owner that rejoins; and with the mark how it should begin
--       (see gate)
-- Returns the result of rejoin.
-- uses newStep, readReturn, rejoin
local key, mark = KEYS[1], KEYS[4]
local ending, proposed, wanted = readReturn(key, KEYS[2], ARGV, 1)
local name, from, back, print, refusal = '{' .. key .. '}:', string.sub(KEYS[2], #key + 9), wanted.owner, nil, nil
local got = call('MGET', key, KEYS[3], name .. 'token', name .. 'place:' .. from, name .. 'place:' .. back, name .. 'gone:' .. back, mark or key)
local time, text = redis.pcall('TIME'), nil
if mark and got[2] then
  text = got[7]
  -- uses gate, printOf, serves
  refusal = not serves(text, ARGV[11]) and select(2, pcall(gate, mark, ARGV[11]))
  print = printOf(ARGV[11])
end
return rejoin(ending, wanted, got, newStep(time, proposed, text, print, refusal))
