-- redisson returns who holds the lock of Redisson at key, as "CLIENT:THREAD", and for how
-- long (ms). It returns nothing if the key is no such lock, if it never expires, or if the
-- user may not look. Redisson keeps a lock as a hash with a field for each holder.
local function redisson(key)
  local left, said = redis.call('PTTL', key), redis.pcall('HSCAN', key, '0', 'COUNT', '10')
  if left < 0 or said.err then
    return
  end
  local x = '%x%x%x%x'
  local client = '^' .. x .. x .. '%-' .. x .. '%-' .. x .. '%-' .. x .. '%-' .. x .. x .. x .. ':%d+'
  for i = 1, #said[2], 2 do
    if string.find(said[2][i], client) then
      return said[2][i], left
    end
  end
end
