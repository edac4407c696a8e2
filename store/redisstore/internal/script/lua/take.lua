-- take writes a lock that nobody has, and its token counter. It returns true, nil if there is a
-- lock after all, or an error reply if it cannot write.
--
-- last: the counter's value before, nil if it had none, as a number
-- value, ttl (ms): of the lock
-- text: the token; see draw
local function take(key, counter, last, value, ttl, text)
  -- MGET returns no value for a key that is not a string, so neither key must exist then.
  local try = redis.pcall
  local said = try('SET', key, value, 'PX', ttl, 'NX')
  if not said then
    return nil
  elseif said.err then
    return said
  end
  if not last then
    said = try('SET', counter, text, 'PX', LIFE, 'NX')
  else
    -- A new end for each token would cost the server 0.5 us. One an hour is enough, unless the
    -- token is the next one after the counter, and so may lead the clock by more than LEAD: see
    -- CounterLife in script.go. Redis before 6 knows no KEEPTTL.
    local token = text + 0
    said = last < token - 1 and last >= token - token % HOUR and try('SET', counter, text, 'KEEPTTL')
    if not said or said.err then
      said = try('SET', counter, text, 'PX', LIFE)
    end
  end
  if not said or said.err then -- without a token there is no grant
    redis.pcall('DEL', key)
    return said or redis.pcall('GET', counter)
  end
  return true
end
