-- delete deletes the locks that several steps release, which are the first n of the keys. If that
-- fails, it deletes one after the other, and puts an error reply into said for each step whose
-- lock cannot be deleted. The argument steps has the places of the steps in said. It reports
-- whether it deleted all at once.
local function delete(n, keys, steps, said)
  if type(redis.pcall('DEL', unpack(keys, 1, n))) ~= 'table' then
    return true
  end
  for i = 1, n do
    local done = redis.pcall('DEL', keys[i])
    if type(done) == 'table' then
      said[steps[i]] = done
    end
  end
end
