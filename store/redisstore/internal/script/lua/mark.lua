-- Functions that read and write the mark of this server; internal/nodemark says what it
-- means. For a mark of another version readMark returns nil and that version; without a
-- mark it returns nil alone.
local WORDS = {'state', 'print', 'run', 'replication', 'opens', 'clientOpens', 'why', 'longest', 'durable', 'clientDurable', 'lengthened', 'before', 'told', 'list'}
local NUMBERS = {'opens', 'clientOpens', 'longest', 'durable', 'clientDurable', 'told'}

local function readMark(text)
  if not text then
    return nil
  end
  local words = {}
  for word in string.gmatch(text .. ' ', '([^ ]*) ') do
    words[#words + 1] = word
  end
  if words[1] ~= '2' then
    return nil, #words[1] == 16 and not string.find(words[1], '%D') and '1' or string.sub(words[1], 1, 20)
  end
  if #words ~= 15 or words[2] ~= 'open' and words[2] ~= 'shut' then
    return nil, '2?'
  end
  local mark = {}
  for i, name in ipairs(WORDS) do
    mark[name] = words[i + 1]
  end
  for _, name in ipairs(NUMBERS) do
    if not string.find(mark[name], '^%d+$') then
      return nil, '2?'
    end
    mark[name] = tonumber(mark[name])
  end
  return mark
end

-- writeMark writes a mark unless it has that text already, so that a user that may not
-- write can run arrive if nothing changes.
local function writeMark(key, mark, before)
  local words = {'2'}
  for i, name in ipairs(WORDS) do
    local word = mark[name]
    words[i + 1] = type(word) == 'number' and string.format('%.0f', word) or word
  end
  local text = table.concat(words, ' ')
  if text ~= before then
    redis.call('SET', key, text)
  end
end
