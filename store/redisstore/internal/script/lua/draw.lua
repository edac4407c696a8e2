-- draw returns the token of a grant, as text. It leads the clock by at most LEAD, or is the next
-- one after the counter, which is the argument last. The clock
-- now (us) is the floor of tokens, even after the counter is lost. A token is always drawn, even
-- if the clock has been set back. Numbers are formatted, because tostring would round
-- microseconds.
local function draw(proposed, last, now)
  local token, text = proposed + 0, proposed
  if token < now or token > now + LEAD or last and token <= last + 0 then
    token = math.max(now, math.min(token, now + LEAD))
    if last and token <= last + 0 then
      token = last + 1
    end
    text = string.format('%.0f', token)
  end
  return text
end
