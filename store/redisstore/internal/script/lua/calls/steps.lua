-- Do a list of steps, for any locks, each as its own script would do it. A step that fails
-- does not make others fail. The clock, the mark and the keys are read once for all steps,
-- and locks that are only to be deleted are deleted at once.
--
-- KEYS: those of each step, without the mark; then the mark, if a step looks at it
-- ARGV: 1 if the mark is given, or 0; for each step its letter, and the arguments of its
--       script without that about the mark; and with the mark that one
--   a, A: acquire (an upper-case letter: look at the mark)    c: confirm    h: heal
--   d, D, r, R: release    b, B: return    x, X: extend, preceded by the number of leases
--   The letter is the beginning of the first argument of acquire and release, and a word of
--   its own for the others.
-- Returns the results of the steps.
-- uses serves, take, try
local most, marked, mark, wanted, print, text, refusal, now = #ARGV, ARGV[1] == '1', nil, nil, nil, nil, nil, nil
local time, got = redis.pcall('TIME'), redis.pcall('MGET', unpack(KEYS))
if got.err then
  got = nil -- the user may lack the permission for one of them
end
if time.err then
  time = nil -- steps that need it fail
else
  now = time[1] * 1000000 + time[2]
end
if marked then
  mark, wanted, most = KEYS[#KEYS], ARGV[most], most - 1
  text = got and got[#KEYS] or redis.pcall('GET', mark)
  if type(text) == 'table' then
    refusal = text
  elseif not serves(text, wanted) then
    -- uses gate
    refusal = try(gate, mark, wanted)
  end
end
local said, n, seen, released = {}, 0, {}, 0
local gone, steps = {}, {} -- locks that are yet to be deleted, by which steps
local k, a = 1, 2 -- the first of the step's keys, and its letter
while a <= most do
  local key, letter = KEYS[k], string.byte(ARGV[a])
  local guarded, keys, args, leases = letter < 97, 2, 2, nil
  if guarded then
    letter = letter + 32
  end
  if letter == 97 then
    keys, args = 3, 4
  elseif letter == 100 or letter == 114 then
    -- it has two of each
  elseif letter == 120 then
    leases = tonumber(ARGV[a + 1])
    keys, args = 2 * leases, leases + 3
  elseif letter == 99 then
    args = 4
  elseif letter == 104 then
    args = 3
  else
    keys, args = 3, 11
  end
  -- What an earlier step may have changed is read again. Renewals change no values.
  local values, first = got, k
  local fresh = not seen[key]
  if leases then
    for i = 1, leases - 1 do
      fresh = fresh and not seen[KEYS[k + i]]
    end
  end
  seen[key] = not leases or seen[key]
  if not (got and fresh) then
    if released > 0 then
      -- uses delete
      delete(gone, steps, said)
      gone, steps, released = {}, {}, 0
    end
    values, first = redis.pcall('MGET', unpack(KEYS, k, k + keys - 1)), 1
  end
  n = n + 1
  local held, answer = values[first], nil
  if values.err then
    answer = values
  elseif letter == 100 and held == ARGV[a + 1] and not values[first + 1] then
    released, answer = released + 1, 1
    gone[released], steps[released] = key, n
  elseif letter == 97 and #ARGV[a] == 1 and now and not held and not values[first + 2] and not (guarded and refusal) then
    local last, proposed = values[first + 1], ARGV[a + 3]
    local token, least = proposed + 0, tonumber(last or '0')
    if least and token > least and token >= now and token <= now + LEAD then -- see calls/acquire
      answer = take(key, KEYS[k + 1], last, ARGV[a + 1], ARGV[a + 2], proposed, '0', time)
    end
  end
  if not answer then
    -- uses anyStep
    answer = anyStep(letter, KEYS, k, ARGV, a, values, first, time, guarded, leases, mark, wanted, text, refusal)
  end
  said[n] = answer
  k, a = k + keys, a + args
end
if released > 0 then
  -- uses delete
  delete(gone, steps, said)
end
return said
