-- anyStep does a step of a list of steps, as its own script would do it.
--
-- list: args, ARGV of the list; time, the clock, nil if it was not read; mark, wanted, text, print and
--     refusal: the mark, how it should begin, its text, the fingerprint of the membership in it,
--     and why it forbids grants
-- keys, k: those of the step begin there
-- a: where its arguments begin, with the letter, which is in upper case for a step that looks at
--     the mark
-- values, first: of its keys, and where they begin
-- uses newStep, try
local function anyStep(list, keys, k, a, values, first)
  local args, time, key, held, letter = list.args, list.time, keys[k], values[first], string.byte(list.args[a])
  local guarded = letter < 97
  local text, refusal = guarded and list.text or nil, guarded and list.refusal
  if guarded then
    letter = letter + 32
  end
  if letter == 97 then
    local why
    if guarded then
      why = refusal or false
    end
    -- uses acquire, readRequest
    return try(acquire, readRequest(keys, k, args, a), {held, values[first + 1], values[first + 2]}, time, why)
  elseif letter == 100 or letter == 114 then
    -- uses readEnding, release
    local ending, proposed = readEnding(args[a], key, args[a + 1])
    return try(release, ending, {held, values[first + 1]}, newStep(time, proposed, text, list.print, refusal))
  elseif letter == 120 then
    local n, why = args[a + 1] + 0, nil
    if guarded then
      -- uses checkMembership
      why = type(text) == 'table' and text or try(checkMembership, text, list.print)
    end
    -- uses extend
    return try(extend, {n = n, keys = keys, first = k, args = args, before = a + 1, got = values, read = first - 1, ttl = args[a + 2 + n]}, why, time)
  elseif letter == 99 then
    -- uses confirm
    return try(confirm, key, keys[k + 1], held, args[a + 1], args[a + 2])
  elseif letter == 104 then
    -- uses heal
    return try(heal, key, keys[k + 1], {held, values[first + 1]}, {value = args[a + 1], ttl = args[a + 2]}, list.mark, list.wanted)
  end
  -- uses readReturn, rejoin
  local ending, proposed, wanted = readReturn(key, keys[k + 1], args, a + 1)
  local from, back, name = string.sub(keys[k + 1], #key + 9), wanted.owner, '{' .. key .. '}:'
  local more = redis.pcall('MGET', name .. 'token', name .. 'place:' .. from, name .. 'place:' .. back, name .. 'gone:' .. back)
  return more.err and more or try(rejoin, ending, wanted, {held, values[first + 2], more[1], more[2], more[3], more[4]}, newStep(time, proposed, text, list.print, refusal))
end
