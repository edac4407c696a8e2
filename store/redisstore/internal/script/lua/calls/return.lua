-- Release the lock and rejoin its queue.
--
-- KEYS: the lock, the owner's tombstone, {L}:waits, and the mark where the server must not have
--       forgotten anything (see arrive)
-- ARGV: value, life, always, undo, proposed, to (see release); then value, TTL (ms), mode and
--       place (see acquire) of the owner that rejoins; and with the mark how it should begin
--       (see gate)
-- Returns the result of rejoin.
-- uses rejoin
local key, mark = KEYS[1], KEYS[4]
local name, from, back = '{' .. key .. '}:', string.sub(KEYS[2], #key + 9), string.match(ARGV[7], '^[^ ]+')
local place, print, refusal = name .. 'place:' .. back, nil, nil
local got = call('MGET', key, KEYS[3], name .. 'token', name .. 'place:' .. from, place, name .. 'gone:' .. back, mark or key)
local time, text = redis.pcall('TIME'), nil
if mark and got[2] then
  text = got[7]
  -- uses gate, printOf, serves
  refusal = not serves(text, ARGV[11]) and select(2, pcall(gate, mark, ARGV[11]))
  print = printOf(ARGV[11])
end
return rejoin(key, KEYS[2], got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], time, text, print, refusal, back, place, {ARGV[7], ARGV[8], ARGV[9], ARGV[10]})
