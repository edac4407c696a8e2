-- insert puts an entry before the first one of the queue with a larger ticket, of which
-- there is one, and returns its position. It looks at the end of the queue first.
local function insert(queue, ticket, entry)
  local look, behind, first = 4, 0, nil
  local some, all
  repeat
    some = call('LRANGE', queue, -look, '-1')
    all = #some
    while behind < all and string.sub(some[all - behind], 1, 16) > ticket do
      first, behind = some[all - behind], behind + 1
    end
    look = look * 8
  until behind < all or all < look / 8
  return call('LINSERT', queue, 'BEFORE', first, entry) - behind
end
