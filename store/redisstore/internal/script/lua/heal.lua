-- heal gives the lock to us if nobody has it. A majority of the nodes has just said that it
-- is ours, and this node has lost it or never had it. No token is drawn. In quarantine the
-- lock is not given: an attempt of another client may count a grant that this server has
-- forgotten.
--
-- key, tombstone: the lock and the owner's tombstone (with the attempt, see readRequest)
-- got: their values
-- lease: value and ttl (ms) of the lock
-- mark, wanted: see gate
-- Returns {1}, {0, value of the holder, its PTTL}, {2} for an owner that was already
-- released, or the result of gate.
local function heal(key, tombstone, got, lease, mark, wanted)
  local held, value, ttl = got[1], lease.value, lease.ttl
  if held and held ~= value then
    -- uses shown
    return {0, shown(key, held)}
  end
  if held then
    if call('PTTL', key) < tonumber(ttl) then
      call('PEXPIRE', key, ttl)
    end
    return {1}
  end
  -- uses gate
  local refusal = gate(mark, wanted)
  if refusal then
    return refusal
  end
  if got[2] then
    return {2}
  end
  if not call('SET', key, value, 'PX', ttl, 'NX') then
    return call('GET', key) -- MGET returns no value for a key that is not a string
  end
  local attempt = string.match(tombstone, ' (.+)', #key + 9)
  if attempt then -- see acquire
    call('SET', '{' .. key .. '}:made', attempt, 'PX', LIFE)
  end
  -- uses leave
  leave('{' .. key .. '}:', string.match(value, '^[^ ]+'))
  return {1}
end
