-- acquire takes the lock if it is free, and draws its token. If another owner has it, it
-- enqueues the request, if asked to.
--
-- key, counter, tombstone: the lock, its token counter and the owner's tombstone. For an owner
--     that is not new, the tombstone's name ends in a space and the attempt.
-- got: the values of these three keys, and, if they were read, of {L}:waits and of the
--     owner's place
-- value, ttl (ms): of the lock
-- proposed: a token
-- mode: empty for a request that does not wait; 0 for one that waits while the lock is
--     held, 1 for one that wants a place even if nobody has the lock, 2 for one that wants
--     a place only behind a holder
-- again: 1 for an owner that has asked before, or 0
-- place: no-push flag, rank (16 digits), and the fields of its place from the stamp to the
--     channel (see readPlace). They are one argument because six more would cost the server
--     0.4 us of the 6 us that a request takes.
-- time: the clock, nil if it was not read
-- refusal: why the mark forbids grants (see gate), false if it does not, and nil where the
--     mark is not looked at
--
-- Returns the grant as a text: the token and the clock (s, us). Otherwise it returns the error reply of take, or {0, value of the holder, its PTTL}, with the mark also {..., 0,
-- 0, the clock}, and for an enqueued request what enqueue returns, or {2} for an owner that was
-- already released, or the refusal.
-- uses draw, take
local function acquire(key, counter, tombstone, got, value, ttl, proposed, mode, again, place, time, refusal)
  local held, last = got[1], got[2]
  if not (held and held ~= value or not held and (mode == '1' or mode == '2')) then
    if refusal then
      return refusal
    end
    time = time or call('TIME')
    if again == '1' then
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
    local text, near = draw(proposed, last, time[1] * 1000000 + time[2])
    if held then -- the counter was lost
      call('DEL', key)
    end
    local said = take(key, counter, last and last + 0, value, ttl, text, text + 0, near)
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
  return refuse(key, tombstone, got, value, ttl, mode, again, place, time, refusal ~= nil)
end
