-- count continues a quarantine, which is now longer by grown. A clock that was set back
-- cannot make it last longer than a full quarantine from now. If the client's clock is
-- behind, the server's clock counts a full quarantine too, but only once.
local function count(mark, client, now, grown)
  mark.opens, mark.clientOpens = mark.opens + grown, mark.clientOpens + grown
  mark.opens = math.min(mark.opens, now + mark.longest)
  if mark.clientOpens > client.wall + mark.longest then
    mark.clientOpens = client.wall + mark.longest
    if mark.lengthened == '0' then
      mark.opens, mark.lengthened = now + mark.longest, '1'
    end
  end
  local over = mark.opens <= now and mark.clientOpens <= client.wall
  mark.state = over and 'open' or 'shut'
end
