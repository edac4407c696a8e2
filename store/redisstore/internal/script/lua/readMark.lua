-- readMark reads the mark of this server from its text, into a table of its fields. For a
-- mark of another version it returns nil and that version; without a mark it returns nil
-- alone.
-- uses markFields
local function readMark(text)
  if not text then
    return nil
  end
  local words = {}
  for word in string.gmatch(text .. ' ', '([^ ]*) ') do
    words[#words + 1] = word
  end
  if words[1] ~= '1' then
    return nil, string.sub(words[1], 1, 20)
  end
  if #words ~= 16 or words[2] ~= 'open' and words[2] ~= 'shut' then
    return nil, '1?'
  end
  local mark, names, numbers = {}, markFields()
  for i, name in ipairs(names) do
    mark[name] = words[i + 1]
  end
  for _, name in ipairs(numbers) do
    if not string.find(mark[name], '^%d+$') then
      return nil, '1?'
    end
    mark[name] = tonumber(mark[name])
  end
  return mark
end
