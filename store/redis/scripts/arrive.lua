-- A client has a new connection to this server, which may have forgotten leases
-- since anybody was here last: then it grants nothing until those have ended.
-- KEYS: the mark, which says when it grants again (us), the run id, and why
-- ARGV: the server's run id, quarantine (us), how long ago it began to run at
--       least (us), '1' if it remembers what it was told whatever happens, why
--       it may have forgotten
-- Returns {how long it still grants nothing (us), why}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local opens, run, why
local mark = redis.call('GET', KEYS[1])
if mark then
  opens, run, why = string.match(mark, '^(%d+) (%S+) (%S+)$')
end
if run ~= ARGV[1] then
  if not opens then -- nothing is known: it may have been emptied just now
    opens, why = now + ARGV[2], 'empty'
  elseif ARGV[4] ~= '1' then
    local over = now - ARGV[3] + ARGV[2]
    if over > tonumber(opens) then
      opens, why = over, ARGV[5]
    end
  end
  opens = string.format('%.0f', opens)
  redis.call('SET', KEYS[1], opens .. ' ' .. ARGV[1] .. ' ' .. why)
end
return {string.format('%.0f', math.max(0, opens - now)), why}
