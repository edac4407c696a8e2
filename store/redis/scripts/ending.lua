-- The lease of ARGV[1] ends, as release says; said is what there is to say of it.
local call, name = redis.call, '{' .. KEYS[1] .. '}:'
local got = KEYS[3] and call('MGET', KEYS[1], name .. 'waits', KEYS[3]) or call('MGET', KEYS[1], name .. 'waits')
local held, said = got[1], {1}
local ours = held == ARGV[1]
if not ours then
  said = {0, held or '', call('PTTL', KEYS[1])}
  if not held and said[3] ~= -2 then
    return call('GET', KEYS[1]) -- MGET does not see what is no string
  end
elseif not got[2] then
  call('DEL', KEYS[1])
end
if ARGV[2] ~= '0' and (not ours or ARGV[3] == '1') then
  call('SET', KEYS[2], '', 'PX', ARGV[2])
end
if got[2] then
  local from = string.sub(KEYS[2], #KEYS[1] + 9)
  if held and not ours then
    -- include leave
    pcall(leave, from)
  else
    -- include hand
    local well, done = pcall(hand, ARGV[5])
    if not (well and done) then
      call('DEL', KEYS[1])
    end
  end
end
