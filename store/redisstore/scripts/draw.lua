-- The token of a grant, as token and text, from proposed, spare, last and now. All
-- nodes usually take the same proposal, and no confirmation is needed. The clock is
-- the floor below which no token falls, even after the counter is lost. So tokens are
-- reserved only as far as they do not lead it by more than LEAD: reserved is how many
-- of the spare ones below token are the grant's as well. There is always a token, also
-- where the clock has been set back. Numbers go out through format: tostring would
-- round microseconds.
local token, text, reserved = proposed + 0, proposed, spare + 0
if token < now or token > now + LEAD or last and token <= last + spare then
  token = math.max(now, math.min(token, now + LEAD))
  if last and token <= last + spare then
    token = math.max(last + 1, math.min(last + spare + 1, now + LEAD))
    reserved = math.min(reserved, token - last - 1)
  end
  text = string.format('%.0f', token)
end
