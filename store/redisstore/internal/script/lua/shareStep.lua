-- shareStep does a step of a lock that several can hold, as its own script would do it, in a
-- list of steps.
--
-- letter: k, K: admit    e, E: endHold    p, P: renewHold    q: confirmHold
-- keys, k, args, a: KEYS and ARGV of the list, and where those of the step begin; a is the
--     place of the letter
-- values: of its keys
-- time, text, print, refusal: the clock, the mark's text, the fingerprint of the membership,
--     and why the mark forbids grants; nil for a step that does not look at the mark
-- uses try
local function shareStep(letter, keys, k, args, a, values, time, text, print, refusal)
  local key, held, last = keys[k], values[1], values[2]
  if letter == 'k' or letter == 'K' then
    -- uses admit
    return try(admit, key, keys[k + 1], keys[k + 2], values, args[a + 1], args[a + 2], args[a + 3], args[a + 4], args[a + 5], args[a + 6], args[a + 7], args[a + 8], args[a + 9], time, refusal, text, print)
  elseif letter == 'p' or letter == 'P' then
    local why = type(text) == 'table' and text
    if text and not why then
      -- uses checkMembership
      why = try(checkMembership, text, print)
    end
    -- uses renewHold
    return try(renewHold, key, keys[k + 1], held, last, args[a + 2], args[a + 3], args[a + 4], args[a + 5], args[a + 1] + 0, args, a + 5, why, time)
  elseif letter == 'q' then
    -- uses confirmHold
    return try(confirmHold, key, keys[k + 1], held, last, args[a + 1], args[a + 2], args[a + 3], time)
  end
  time = time or try(call, 'TIME')
  if time.err then
    return time
  end
  -- uses endHold
  return try(endHold, key, keys[k + 1], held, values[3], args[a + 1], args[a + 2], args[a + 3], args[a + 4], args[a + 5], time, text, print, refusal)
end
