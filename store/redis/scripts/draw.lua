-- The token of a grant, as token and text, from proposed, spare, last and now. All
-- nodes usually take the same proposal, and no confirmation is needed. The clock is
-- the floor below which no token falls, even after the counter is lost. Numbers go
-- out through format: tostring would round microseconds.
local token, text = proposed + 0, proposed
if token < now or token > now + LEAD or last and token <= last + spare then
  token = math.max(now, math.min(token, now + LEAD))
  if last and token <= last + spare then
    token = last + spare + 1
  end
  text = string.format('%.0f', token)
end
