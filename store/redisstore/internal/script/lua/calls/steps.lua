-- Do a list of steps, for any locks, each as its own script would do it. A step that fails
-- does not make others fail. The clock, the mark and the keys are read once for all steps,
-- and locks that are only to be deleted are deleted at once.
--
-- KEYS: those of each step, without the mark; then the mark, if a step looks at it; then the
--       locks of plain requests, in order, if no two steps are for the same lock; then, in a
--       cluster, a key that is never written, if a step is a release: see WholeEnd in keys.go
-- ARGV: a number: 1 if the mark is given, plus 2 if no two steps are for the same lock, plus 4 for
--       each key after the mark; for each step its letter, and the arguments of its script without
--       that about the mark; and with the mark that one
--   a, A: acquire (an upper-case letter: look at the mark)    c: confirm    h: heal
--   d, D, r, R: release    b, B: return    x, X: extend, preceded by the number of leases
--   The letter is the beginning of the first argument of acquire and release, and a word of
--   its own for the others.
-- Returns the clock (s, us) as a text, or null if it cannot be read, and the results of the steps.
-- A grant of the proposed token is 1. If all
-- results are 1, it only returns the text: a list of them would cost 1 us.
--
-- A plain request is that of a new owner that does not wait. SET finds out whether the lock is
-- held, so its value is not read if no other step is for the lock.
--
-- No tables are made for a list of different locks: results take the place of values that were
-- read before, and locks that are yet to be deleted that of keys and arguments. Nothing is
-- overwritten before it is used, since a step has two keys and two arguments at least.
-- uses take
local keys, args, ask, byte, number = KEYS, ARGV, redis.pcall, string.byte, tonumber
local head, most, mark, wanted, text, refusal, now, seen = args[1] + 0, #args, nil, nil, nil, nil, nil, nil
local flags = head % 4
local unread = flags < 2 and 0 or 1 -- 1 if the locks of plain requests are not read
local lock = #keys - (head - flags) / 4 -- the last key that is read; it then counts the locks after that one
local time, got = ask('TIME'), ask('MGET', unpack(keys, 1, lock))
local said, simple = got, true -- simple: all results are 1
if time.err then
  time = nil -- steps that need it fail
else
  now = time[1] * 1000000 + time[2]
end
if flags % 2 == 1 then
  mark, wanted, most = keys[lock], args[most], most - 1
  text = got[lock] or ask('GET', mark)
  if type(text) == 'table' then
    refusal = text
  elseif not text or string.find(text, wanted, 1, true) ~= 1 then -- as serves does
    -- uses gate, try
    refusal = try(gate, mark, wanted)
  end
end
if got.err then -- the user may lack the permission for one of them
  got, said, seen = nil, {}, {}
elseif flags < 2 then
  seen = {}
end
local plain, ttl, barred -- the last plain request, what it says, and whether the mark forbids grants to it
local list -- what anyStep knows of the list, once it is needed
local n, released = 1, 0 -- how many results there are, and how many locks are yet to be deleted
local k, a = 1, 2 -- the first of the step's keys, and its letter
while a <= most do
  local word, key, letter, count, words, leases = args[a], keys[k], 97, 2, 3, nil
  if word ~= plain then
    letter = byte(word)
    if letter == 100 or letter == 68 or letter == 114 or letter == 82 then
      words = 2
    elseif letter == 97 or letter == 65 then
      local lasts = string.match(word, '^.(%d+)$')
      if lasts then
        plain, ttl, barred, letter = word, lasts, letter == 65 and refusal, 97
      else
        count, letter = 3, 65
      end
    elseif letter == 120 or letter == 88 then
      leases = number(args[a + 1])
      count, words = 2 * leases, leases + 3
    elseif letter == 98 or letter == 66 then
      count, words = 3, 11
    end
  end
  if letter == 97 then
    if unread == 0 then
      count = 3
    else
      lock = lock + 1
      key = keys[lock]
    end
  end
  local values, first, answer = got, k, nil
  if seen then -- what an earlier step may have changed is read again; renewals change no values
    local fresh = got and not seen[key]
    if leases then
      for i = 1, leases - 1 do
        fresh = fresh and not seen[keys[k + i]]
      end
    end
    seen[key] = not leases or seen[key]
    if not fresh then
      if released > 0 then
        -- uses delete
        simple = delete(released, keys, args, said) and simple
        released = 0
      end
      values, first = ask('MGET', unpack(keys, k, k + count - 1)), 1
      answer = values.err and values
    end
  end
  n = n + 1
  if answer then
    -- it cannot be read
  elseif letter == 97 then
    local i = first + 1 - unread
    if (unread == 1 or not values[first]) and now and not values[i + 1] and not barred then
      local last, proposed = values[i], args[a + 2]
      local token, least = proposed + 0, last and number(last)
      if token >= now and token <= now + LEAD and (least and token > least or not last) then -- see calls/acquire
        answer = take(key, keys[k + 1 - unread], least, args[a + 1], ttl, proposed)
        if answer == true then
          answer = 1
        end
      end
    end
  elseif (letter == 100 or letter == 68) and values[first] == args[a + 1] and not values[first + 1] then
    released, answer = released + 1, 1
    keys[released], args[released] = key, n
  end
  if answer ~= 1 then
    simple = false
    if not answer then
      local its, from = keys, k
      if letter == 97 and unread == 1 then
        its, from = {key, keys[k], keys[k + 1]}, 1
        values, first = ask('MGET', unpack(its)), 1
      end
      -- uses anyStep
      if not list then
        -- uses printOf
        list = {args = args, time = time, mark = mark, wanted = wanted, print = printOf(wanted), text = text, refusal = refusal}
      end
      answer = values.err and values or anyStep(list, its, from, a, values, first)
    end
  end
  said[n] = answer
  k, a = k + count, a + words
end
if released > 0 then
  -- uses delete
  simple = delete(released, keys, args, said) and simple
end
if time then
  time = time[1] .. ' ' .. time[2]
  if simple then
    return time
  end
end
said[1], said[n + 1] = time or false, nil
return said
