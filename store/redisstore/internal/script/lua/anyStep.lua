-- anyStep does a step of a list of steps, as its own script would do it.
--
-- keys, k, args, a: KEYS and ARGV of the list, and where those of the step begin; a is the
--     place of the letter, which is in upper case for a step that looks at the mark
-- values, first: of its keys, and where they begin
-- leases: of a renewal
-- mark, wanted, text, refusal: the mark, how it should begin, its text, and why it forbids grants
-- uses try
local function anyStep(keys, k, args, a, values, first, time, leases, mark, wanted, text, refusal)
  local key, held, letter = keys[k], values[first], string.byte(args[a])
  local guarded = letter < 97
  if guarded then
    letter = letter + 32
  end
  if letter == 97 then
    local why
    if guarded then
      why = refusal or false
    end
    -- uses acquire, readRequest
    local ttl, mode, again, place = readRequest(args[a])
    return try(acquire, key, keys[k + 1], keys[k + 2], {held, values[first + 1], values[first + 2]}, args[a + 1], ttl, args[a + 2], mode, again, place, time, why)
  end
  -- uses printOf
  local print = printOf(wanted)
  if letter == 100 or letter == 114 then
    -- uses readEnding, release
    local life, always, undo, proposed, to, tombstone = readEnding(args[a], key, args[a + 1])
    return try(release, key, tombstone, {held, values[first + 1]}, args[a + 1], life, always, undo, proposed, to, time, guarded and text or nil, print, guarded and refusal)
  elseif leases then
    local why
    if guarded then
      -- uses checkMembership
      why = type(text) == 'table' and text or try(checkMembership, text, print)
    end
    -- uses extend
    return try(extend, leases, keys, k, args, a + 1, values, first - 1, args[a + 2 + leases], why, time)
  elseif letter == 99 then
    -- uses confirm
    return try(confirm, key, keys[k + 1], held, args[a + 1], args[a + 2])
  elseif letter == 104 then
    -- uses heal
    return try(heal, key, keys[k + 1], held, values[first + 1], args[a + 1], args[a + 2], mark, wanted)
  end
  -- uses rejoin
  local from, back, name = string.sub(keys[k + 1], #key + 9), string.match(args[a + 7], '^[^ ]+'), '{' .. key .. '}:'
  local place = name .. 'place:' .. back
  local more = redis.pcall('MGET', name .. 'token', name .. 'place:' .. from, place, name .. 'gone:' .. back)
  return more.err and more or try(rejoin, key, keys[k + 1], {held, values[first + 2], more[1], more[2], more[3], more[4]}, args[a + 1], args[a + 2], args[a + 3], args[a + 4], args[a + 5], args[a + 6], time, guarded and text or nil, print, guarded and refusal, back, place, {args[a + 7], args[a + 8], args[a + 9], args[a + 10]})
end
