-- draw returns the token of a grant, as text, how many of the spare tokens below it belong to
-- the grant, and whether the token was drawn without regard to the counter: then it leads the
-- clock by at most LEAD. The argument last is the counter. The clock now (us) is the floor
-- of tokens, even after the counter is lost, so tokens are reserved only as far as they
-- lead the clock by at most LEAD. A token is always drawn, even if the clock has been set
-- back. Numbers are formatted, because tostring would round microseconds.
local function draw(proposed, spare, last, now)
  local token, text, reserved, near = proposed + 0, proposed, spare + 0, true
  if token < now or token > now + LEAD or last and token <= last + spare then
    token = math.max(now, math.min(token, now + LEAD))
    if last and token <= last + spare then
      token = math.max(last + 1, math.min(last + spare + 1, now + LEAD))
      reserved, near = math.min(reserved, token - last - 1), false
    end
    text = string.format('%.0f', token)
  end
  return text, reserved, near
end
