-- acquire takes the lock if it is free, and draws its token. If another owner has it, it
-- enqueues the request, if asked to.
--
-- wanted: the request; see readRequest
-- got: the values of the lock, its token counter and the owner's tombstone, and, if they were
--     read, of {L}:waits and of the owner's place
-- time: the clock, nil if it was not read
-- refusal: why the mark forbids grants (see gate), false if it does not, and nil where the
--     mark is not looked at
--
-- Returns the grant as a text: the token and the clock (s, us). Otherwise it returns the error reply of take, or {0, value of the holder, its PTTL}, with the mark also {..., 0,
-- 0, the clock}, and for an enqueued request what enqueue returns, or {2} for an owner that was
-- already released, or the refusal.
-- uses draw, take
local function acquire(wanted, got, time, refusal)
  local key, tombstone, value, ttl, mode = wanted.key, wanted.tombstone, wanted.value, wanted.ttl, wanted.mode
  local held, last = got[1], got[2]
  if not (held and held ~= value or not held and (mode == '1' or mode == '2')) then
    if refusal then
      return refusal
    end
    time = time or call('TIME')
    if wanted.again == '1' then
      -- uses leave
      leave('{' .. key .. '}:', string.sub(tombstone, #key + 9), got[5])
    end
    -- For an owner that is not new, {L}:made names the attempt that made the grant, until
    -- another attempt knows about it.
    local attempt = string.match(tombstone, ' (.+)', #key + 9)
    if held and attempt and call('MGET', '{' .. key .. '}:made')[1] ~= attempt then
      call('DEL', '{' .. key .. '}:made')
    end
    if held and last then -- the same request again gets the same grant, which is never shortened
      if call('PTTL', key) < tonumber(ttl) then
        call('PEXPIRE', key, ttl)
      end
      return last .. ' ' .. time[1] .. ' ' .. time[2]
    end
    if got[3] then
      return {2}
    end
    local text = draw(wanted.proposed, last, time[1] * 1000000 + time[2])
    if held then -- the counter was lost
      call('DEL', key)
    end
    local said = take(key, wanted.counter, last and last + 0, value, ttl, text)
    if said == true then
      if attempt and not held then
        call('SET', '{' .. key .. '}:made', attempt, 'PX', LIFE)
      end
      return text .. ' ' .. time[1] .. ' ' .. time[2]
    elseif said then
      return said
    end
  end
  -- uses refuse
  return refuse(wanted, got, time, refusal ~= nil)
end
