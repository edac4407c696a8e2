-- Do a list of steps of locks that several can hold, each as its own script would do it. It is
-- steps for such locks; a script of its own keeps steps short. The clock, the mark and the keys
-- are read once.
--
-- KEYS, ARGV: as in steps, for a list of which it is not known that its locks differ; a renewal is
--     preceded by the number of leases
-- Returns what steps returns.
-- uses admitFirst, endOnly, printOf, serves, shareStep, try
local most, marked, print, text, refusal = #ARGV, ARGV[1] % 2 == 1, nil, nil, nil
local time, got = redis.pcall('TIME'), redis.pcall('MGET', unpack(KEYS))
if got.err then
  got = nil -- the user may lack the permission for one of them
end
if time.err then
  time = nil -- each step reads it
end
if marked then
  local wanted = ARGV[most]
  print, text, most = printOf(wanted), got and got[#KEYS] or redis.pcall('GET', KEYS[#KEYS]), most - 1
  if type(text) == 'table' then
    refusal = text
  elseif not serves(text, wanted) then
    -- uses gate
    refusal = try(gate, KEYS[#KEYS], wanted)
  end
end
-- What an earlier step may have changed is read again.
local said, seen, n = {time and time[1] .. ' ' .. time[2] or false}, {}, 1
local k, a = 1, 2 -- the first of the step's keys, and its letter
while a <= most do
  local letter, key = ARGV[a], KEYS[k]
  local keys, args = 4, 10
  if letter == 'e' or letter == 'E' then
    keys, args = 3, 6
  elseif letter == 'p' or letter == 'P' then
    keys, args = 4, 6 + 2 * ARGV[a + 1]
  elseif letter == 'q' then
    keys, args = 3, 4
  end
  local values, first = got, k
  if not got or seen[key] then
    values, first = redis.pcall('MGET', unpack(KEYS, k, k + keys - 1)), 1
  end
  n, seen[key] = n + 1, true
  if values.err then
    said[n] = values
  else
    local guarded, its = string.byte(letter) < 97, {values[first], values[first + 1], values[first + 2], values[first + 3]}
    local why = guarded and refusal or nil
    local asks, ends, done = letter == 'k' or letter == 'K', letter == 'e' or letter == 'E', nil
    if asks and not why then
      done = try(admitFirst, key, KEYS[k + 1], KEYS[k + 2], its, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], time)
    elseif ends then
      done = try(endOnly, key, KEYS[k + 1], its[1], its[3], ARGV[a + 1], ARGV[a + 2])
      done = done == true and {1} or done
    end
    said[n] = done or shareStep(letter, KEYS, k, ARGV, a, its, time, guarded and text or nil, print, why)
  end
  k, a = k + keys, a + args
end
return said
