-- Draw the token of a grant from proposed, spare, last and now; set token, text and
-- reserved. All nodes usually take the same proposal, and no confirmation is needed. The
-- clock is the floor of tokens, even after the counter is lost, so tokens are reserved
-- only as far as they lead the clock by at most LEAD: reserved is how many of the spare
-- tokens below token belong to the grant. A token is always drawn, even if the clock has
-- been set back. Numbers are formatted, because tostring would round microseconds.
local token, text, reserved = proposed + 0, proposed, spare + 0
if token < now or token > now + LEAD or last and token <= last + spare then
  token = math.max(now, math.min(token, now + LEAD))
  if last and token <= last + spare then
    token = math.max(last + 1, math.min(last + spare + 1, now + LEAD))
    reserved = math.min(reserved, token - last - 1)
  end
  text = string.format('%.0f', token)
end
