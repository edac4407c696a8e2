-- Remove the lock if it is ours. If it is not, and its acquire may still be on
-- the way, leave a tombstone that keeps it from taking the lock after all. One
-- that was renewed leaves it in any case: healing may still be on the way.
-- The owner's place in the line is given up, and a lock that is free goes to the
-- first of those who wait, which never makes the release fail. Or it goes to the one
-- that is given way to, who is put first for that; and if that one does not wait
-- here, to nobody.
-- KEYS: the lock, this owner's tombstone, and the mark where the server must not have
--       forgotten anything (see arrive)
-- ARGV: value, how long the tombstone is kept (ms), 0 for none, 1 to leave it in
--       any case, a token proposed for the next, who is given way to (nobody: a space;
--       empty: whoever is next), quarantine (us), fingerprint of the list of nodes
-- Returns {1} or {0, value of the holder, its PTTL}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local call = redis.call
local got = call('MGET', KEYS[1], '{' .. KEYS[1] .. '}:line')
local held, said = got[1], {1}
local ours = held == ARGV[1]
if ours then
  call('DEL', KEYS[1])
else
  said = {0, held or '', call('PTTL', KEYS[1])}
  if not held and said[3] ~= -2 then
    return call('GET', KEYS[1]) -- MGET does not see what is no string
  end
end
if ARGV[2] ~= '0' and (not ours or ARGV[3] == '1') then
  call('SET', KEYS[2], '', 'PX', ARGV[2])
end
if got[2] then
  -- include leave
  -- include hand
  pcall(function()
    local line = leave(string.match(ARGV[1], '^[^ ]+'), got[2])
    if not line or held and not ours then
      return
    end
    if ARGV[5] ~= '' then
      local from, to = string.find(line, ' ' .. ARGV[5] .. '\n', 1, true)
      local name = '{' .. KEYS[1] .. '}:'
      if not from or not call('GET', name .. 'place:' .. ARGV[5]) then
        return
      end
      line = string.sub(line, from - 16, to) .. string.sub(line, 1, from - 17) .. string.sub(line, to + 1)
      call('SET', name .. 'line', line, 'PX', math.max(1, call('PTTL', name .. 'line')))
    end
    hand(line, ARGV[4], KEYS[3], ARGV[6], ARGV[7])
  end)
end
return said
