-- A client has a new connection to this server, which may have forgotten leases
-- since anybody was here last: then it grants nothing until those have ended.
-- KEYS: the mark, which says when it grants again (us, 16 digits), of which list of
--       nodes the server is one (its fingerprint), the run id, why, with a colon and
--       the longest quarantine that any client asked for (us), and the list; - is
--       nothing
-- ARGV: the server's run id, quarantine (us), how long ago it began to run at
--       least (us), '1' if it remembers what it was told whatever happens, why
--       it may have forgotten, the client's list in the same way
-- Returns {how long it still grants nothing (us), why, the longest quarantine (us)}.
if #KEYS == 0 then return 0 end -- called to be learned, see learn
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mark = redis.call('GET', KEYS[1])
local opens, print, run, why, list = string.match(mark or '', '^(%d+) (%S+) (%S+) (%S+) (%S+)$')
local were = list
local first = string.match(ARGV[7], '^[^>]+') -- of two lists it is one of the first, until that is replaced
-- Who has this server only is not left with it beside those who count it among several,
-- who would have a majority without it.
local alone = list and list ~= '-' and not string.find(list, ',', 1, true) and string.find(first, ',', 1, true)
if not print or print == '-' or alone then
  print, list = string.match(ARGV[6], '^[^>]+'), first
elseif print == ARGV[6] then
  list = ARGV[7]
end
-- A longer lease than this client grants may have been forgotten as well.
local reason, most = string.match(why or '', '^([^:]*):?(%d*)$')
most = tonumber(most)
local quarantine = math.max(most or 0, ARGV[2])
if run ~= ARGV[1] then
  if not opens then -- nothing is known: it may have been emptied just now
    opens, reason = now + quarantine, 'empty'
  elseif ARGV[4] ~= '1' then
    local over = now - ARGV[3] + quarantine
    if over > tonumber(opens) then
      opens, reason = over, ARGV[5]
    end
  end
elseif most then
  opens = opens + quarantine - most
end
opens = string.format('%016.0f', opens)
why = string.format('%s:%.0f', reason or '-', quarantine)
local now_is = table.concat({opens, print, ARGV[1], why, list}, ' ')
if now_is ~= mark then
  redis.call('SET', KEYS[1], now_is)
end
if list ~= were and string.find(list, ',', 1, true) then
  -- include tell
end
return {string.format('%.0f', math.max(0, opens - now)), why, string.format('%.0f', quarantine)}
