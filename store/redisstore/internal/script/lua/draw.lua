-- draw returns the token of a grant, as text, and whether it was drawn without regard to the
-- counter: then it leads the clock by at most LEAD. The argument last is the counter. The clock
-- now (us) is the floor of tokens, even after the counter is lost. A token is always drawn, even
-- if the clock has been set back. Numbers are formatted, because tostring would round
-- microseconds.
local function draw(proposed, last, now)
  local token, text, near = proposed + 0, proposed, true
  if token < now or token > now + LEAD or last and token <= last + 0 then
    token = math.max(now, math.min(token, now + LEAD))
    if last and token <= last + 0 then
      token, near = last + 1, false
    end
    text = string.format('%.0f', token)
  end
  return text, near
end
