-- There are larger tickets in the queue: insert the entry before the first of them.
local look, behind, first = 4, 0, nil
repeat
  local some = call('LRANGE', line, -look, '-1')
  local all = #some
  while behind < all and sub(some[all - behind], 1, 16) > ticket do
    first, behind = some[all - behind], behind + 1
  end
  look = look * 8
until behind < all or all < look / 8
position = call('LINSERT', line, 'BEFORE', first, entry) - behind
