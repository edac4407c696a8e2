-- draw returns the token of a grant, as text, and how many of the spare tokens below it
-- belong to the grant. The argument last is the counter. The clock now (us) is the floor
-- of tokens, even after the counter is lost, so tokens are reserved only as far as they
-- lead the clock by at most LEAD. A token is always drawn, even if the clock has been set
-- back. Numbers are formatted, because tostring would round microseconds.
local function draw(proposed, spare, last, now)
  local token, text, reserved = proposed + 0, proposed, spare + 0
  if token < now or token > now + LEAD or last and token <= last + spare then
    token = math.max(now, math.min(token, now + LEAD))
    if last and token <= last + spare then
      token = math.max(last + 1, math.min(last + spare + 1, now + LEAD))
      reserved = math.min(reserved, token - last - 1)
    end
    text = string.format('%.0f', token)
  end
  return text, reserved
end
