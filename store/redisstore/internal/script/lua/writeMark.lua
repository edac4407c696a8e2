-- writeMark writes a mark unless it has the text before already, so that a user that may
-- not write can run arrive if nothing changes.
-- uses markFields
local function writeMark(key, mark, before)
  local words = {'1'}
  for i, name in ipairs((markFields())) do
    local word = mark[name]
    words[i + 1] = type(word) == 'number' and string.format('%.0f', word) or word
  end
  local text = table.concat(words, ' ')
  if text ~= before then
    call('SET', key, text)
  end
end
