-- redisson returns the holder of the Redisson lock at key, as "CLIENT:THREAD". It returns
-- nothing if the key is not such a lock, if it never expires, or if the user lacks the
-- permission to read it. A Redisson lock is a hash with
-- a field for each holder.
local function redisson(key)
  local left, said = call('PTTL', key), redis.pcall('HSCAN', key, '0', 'COUNT', '10')
  if left < 0 or said.err then
    return
  end
  local x = '%x%x%x%x'
  local client = '^' .. x .. x .. '%-' .. x .. '%-' .. x .. '%-' .. x .. '%-' .. x .. x .. x .. ':%d+'
  for i = 1, #said[2], 2 do
    if string.find(said[2][i], client) then
      return said[2][i]
    end
  end
end
