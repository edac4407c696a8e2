-- newStep returns what a step knows besides the lock: time, the clock (s, us), also as now (us) and
-- ms, which are nil if it cannot be read; proposed, a token; mark and print, the mark's text, nil if
-- it is not looked at, and the fingerprint of the client's membership; and refusal, why the mark
-- forbids grants, if it does.
local function newStep(time, proposed, mark, print, refusal)
  local now = time and time[1] and time[1] * 1000000 + time[2]
  return {time = time, now = now, ms = now and (now - now % 1000) / 1000, proposed = proposed, mark = mark, print = print, refusal = refusal}
end
