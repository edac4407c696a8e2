-- Release the lock and rejoin its queue.
--
-- KEYS: as in release
-- ARGV: the first six of release; then value, TTL (ms), mode and place (see acquire) of the
--       owner that rejoins; and with the mark the arguments of gate
-- Returns the result of rejoin.
-- uses rejoin
local key, mark = KEYS[1], KEYS[4]
local name, from, back = '{' .. key .. '}:', string.sub(KEYS[2], #key + 9), string.match(ARGV[7], '^[^ ]+')
local place, refusal = name .. 'place:' .. back, nil
local got = call('MGET', key, KEYS[3], name .. 'token', name .. 'place:' .. from, place, name .. 'gone:' .. back, mark or key)
local time, text = redis.pcall('TIME'), nil
if mark and got[2] then
  text = got[7]
  -- uses gate, serves
  refusal = not serves(text, ARGV[11], ARGV[12], ARGV[13]) and select(2, pcall(gate, mark, ARGV[11], ARGV[12], ARGV[13]))
end
return rejoin(key, KEYS[2], got, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], time, text, ARGV[11], refusal, back, place, {ARGV[7], ARGV[8], ARGV[9], ARGV[10]})
