-- Do a list of steps, for any locks, each as its own script would do it. A step that fails
-- does not make others fail. The clock, the mark and the keys are read once for all steps,
-- and locks that are only to be deleted are deleted at once.
--
-- KEYS: those of each step, without the mark; then the mark, if a step looks at it
-- ARGV: 1 if the mark is given, or 0; for each step its letter, and the arguments of its
--       script without those of gate; and with the mark those
--   a, A: acquire (an upper-case letter: look at the mark)    c: confirm    h: heal
--   r, R: release    b, B: return    x, X: extend, preceded by the number of leases
-- Returns the results of the steps.
-- uses acquire, confirm, extend, heal, rejoin, release, serves, try
local most, marked, mark, print, run, counting, text, refusal = #ARGV, ARGV[1] == '1', nil, nil, nil, nil, nil, nil
local time, got = redis.pcall('TIME'), redis.pcall('MGET', unpack(KEYS))
if got.err then
  got = nil -- the user may lack the permission for one of them
end
if time.err then
  time = nil -- steps that need it fail
end
if marked then
  mark, print, run, counting, most = KEYS[#KEYS], ARGV[most - 2], ARGV[most - 1], ARGV[most], most - 3
  text = got and got[#KEYS] or redis.pcall('GET', mark)
  if type(text) == 'table' then
    refusal = text
  elseif not serves(text, print, run, counting) then
    -- uses gate
    refusal = try(gate, mark, print, run, counting)
  end
end
local said, n, seen, done = {}, 0, {}, {1}
local gone, steps = {}, {} -- locks that are yet to be deleted, by which steps
local k, a = 1, 2 -- the first of the step's keys, and its letter
while a <= most do
  local letter, key, guarded = ARGV[a], KEYS[k], string.byte(ARGV[a]) < 97
  local keys, args, leases = 2, 7, nil
  if letter == 'a' or letter == 'A' then
    keys, args = 3, 8
  elseif letter == 'r' or letter == 'R' then
    keys = 3
  elseif letter == 'x' or letter == 'X' then
    leases = tonumber(ARGV[a + 1])
    keys, args = 2 * leases, leases + 3
  elseif letter == 'c' then
    args = 4
  elseif letter == 'h' then
    args = 3
  else
    keys, args = 3, 11
  end
  -- What an earlier step may have changed is read again. Renewals change no values.
  local values, first = got, k
  local fresh = not seen[key]
  for i = 1, leases and leases - 1 or 0 do
    fresh = fresh and not seen[KEYS[k + i]]
  end
  seen[key] = not leases or seen[key]
  if not (got and fresh) then
    if gone[1] then
      -- uses delete
      delete(gone, steps, said)
      gone, steps = {}, {}
    end
    values, first = redis.pcall('MGET', unpack(KEYS, k, k + keys - 1)), 1
  end
  n = n + 1
  local held = values[first]
  if values.err then
    said[n] = values
  elseif letter == 'r' or letter == 'R' then
    local value, life, always, tombstone, waits = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], KEYS[k + 1], values[first + 2]
    if held == value and not waits and (life == '0' or always == '0') and not string.find(tombstone, ' ', #key + 9, true) then
      gone[#gone + 1], steps[#gone + 1], said[n] = key, n, done
    else
      said[n] = try(release, key, tombstone, {held, waits}, value, life, always, ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], time, guarded and text or nil, print, guarded and refusal)
    end
  elseif letter == 'a' or letter == 'A' then
    local why
    if guarded then
      why = refusal or false
    end
    said[n] = try(acquire, key, KEYS[k + 1], KEYS[k + 2], {held, values[first + 1], values[first + 2]}, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], time, why)
  elseif leases then
    local why
    if guarded then
      -- uses checkMembership
      why = type(text) == 'table' and text or try(checkMembership, text, print)
    end
    said[n] = try(extend, leases, KEYS, k, ARGV, a + 1, values, first - 1, ARGV[a + 2 + leases], why, time)
  elseif letter == 'c' then
    said[n] = try(confirm, key, KEYS[k + 1], held, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
  elseif letter == 'h' then
    said[n] = try(heal, key, KEYS[k + 1], held, values[first + 1], ARGV[a + 1], ARGV[a + 2], mark, print, run, counting)
  else
    local from, back, name = string.sub(KEYS[k + 1], #key + 9), string.match(ARGV[a + 7], '^[^ ]+'), '{' .. key .. '}:'
    local place = name .. 'place:' .. back
    local more = redis.pcall('MGET', name .. 'token', name .. 'place:' .. from, place, name .. 'gone:' .. back)
    said[n] = more.err and more or try(rejoin, key, KEYS[k + 1], {held, values[first + 2], more[1], more[2], more[3], more[4]}, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], time, guarded and text or nil, print, guarded and refusal, back, place, {ARGV[a + 7], ARGV[a + 8], ARGV[a + 9], ARGV[a + 10]})
  end
  k, a = k + keys, a + args
end
if gone[1] then
  -- uses delete
  delete(gone, steps, said)
end
return said
