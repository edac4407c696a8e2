-- Take an owner out of the line, with its place (see place). What is no line is left
-- alone. line is what there is, if that is known. Returns the line, if there is one.
local function leave(owner, line)
  local name = '{' .. KEYS[1] .. '}:'
  line = line or redis.call('MGET', name .. 'line')[1]
  local from, to = string.find(line or '', ' ' .. owner .. '\n', 1, true)
  if from then
    redis.call('DEL', name .. 'place:' .. owner)
    line = string.sub(line, 1, from - 17) .. string.sub(line, to + 1)
    if line == '' then
      redis.call('DEL', name .. 'line')
      return false
    end
    redis.call('SET', name .. 'line', line, 'PX', math.max(1, redis.call('PTTL', name .. 'line')))
  end
  return line
end
