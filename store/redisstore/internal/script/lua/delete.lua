-- delete deletes the locks that several steps release. If that fails, it deletes one after
-- the other, and puts an error reply into said for each step whose lock cannot be deleted.
local function delete(keys, steps, said)
  if type(redis.pcall('DEL', unpack(keys))) == 'table' then
    for i, key in ipairs(keys) do
      local done = redis.pcall('DEL', key)
      if type(done) == 'table' then
        said[steps[i]] = done
      end
    end
  end
end
