-- prolong makes the keys of a record last until ends (ms) at least. It comes before a grant is
-- written that ends then.
local function prolong(record, ends)
  record.lasts = record.lasts or record.ms + math.max(call('PTTL', record.key), 0)
  if ends > record.lasts then
    local left = string.format('%.0f', ends - record.ms)
    record.lasts = ends
    call('PEXPIRE', record.key, left)
    call('PEXPIRE', record.held, left)
    call('PEXPIRE', record.ends, left)
    call('PEXPIRE', record.ranks, left)
  end
end
