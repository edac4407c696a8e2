-- tooMany reports whether a grant has a slot for which there is no permit any more, after the lock
-- was resized on one of several servers. Such a server grants nothing then: it does not know how
-- many permits are held.
local function tooMany(record)
  for _, h in ipairs(record.holds) do
    if record.resized and string.match(h.slots, '%d+$') + 0 >= record.limit then
      return true
    end
  end
  return false
end
