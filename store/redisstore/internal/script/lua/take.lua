-- take writes a lock that nobody has, and its token counter. It returns the grant as a text: the
-- token, the clock (s, us), and how many tokens below it are reserved. It returns nil if there is
-- a lock after all, and an error reply if it cannot write.
--
-- last: the counter's value before
-- text, reserved: see draw; both are texts, since Lua takes 0.5 us to format a number
-- time: the clock
local function take(key, counter, last, value, ttl, text, reserved, time)
  -- MGET returns no value for a key that is not a string, so neither key must exist then.
  local said = redis.pcall('SET', key, value, 'PX', ttl, 'NX')
  if not said then
    return nil
  elseif said.err then
    return said
  end
  if last then
    said = redis.pcall('SET', counter, text, 'PX', LIFE)
  else
    said = redis.pcall('SET', counter, text, 'PX', LIFE, 'NX')
  end
  if not said or said.err then -- without a token there is no grant
    redis.pcall('DEL', key)
    return said or redis.pcall('GET', counter)
  end
  return text .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. reserved
end
