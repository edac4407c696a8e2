-- Judge a token by what is remembered, and do something if it is good enough.
-- KEYS: where the largest token is remembered, then those of the work
-- ARGV: the token, how long it is remembered (ms, 0 for ever), then the work's
-- Returns {0, largest token} when refused, else {1, what the work returned}.
local highest = redis.call('GET', KEYS[1])
if highest and not tonumber(highest) then
  return redis.error_reply('ERR ' .. KEYS[1] .. ' should hold a fencing token and holds something else')
end
if highest and tonumber(ARGV[1]) < tonumber(highest) then
  return {0, highest}
end
if ARGV[2] == '0' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
local function work(KEYS, ARGV)
--WORK--
end
local keys, argv = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do argv[i - 2] = ARGV[i] end
local result = work(keys, argv)
if type(result) == 'table' and result.err then
  return result -- an error is an error of the whole
end
if result == nil then result = false end -- nil would end the array
return {1, result}
