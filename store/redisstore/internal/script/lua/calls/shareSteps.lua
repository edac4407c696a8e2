-- Do a list of steps of locks that several can hold, each as its own script would do it: admit (k),
-- endHold (e), renewHold (p), confirmHold (q), in upper case for a step that looks at the mark. It is
-- steps for such locks; a script of its own keeps steps short. The clock, the mark and the keys
-- are read once.
--
-- KEYS, ARGV: as in steps, for a list of which it is not known that its locks differ; a renewal is
--     preceded by the number of leases
-- Returns what steps returns.
-- uses admitFirst, endOnly, newStep, printOf, readWanted, serves, try
local most, marked, print, text, refusal = #ARGV, ARGV[1] % 2 == 1, nil, nil, nil
local time, got = redis.pcall('TIME'), redis.pcall('MGET', unpack(KEYS))
if got.err then
  got = nil -- the user may lack the permission for one of them
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
local said, seen, n = {not time.err and time[1] .. ' ' .. time[2]}, {}, 1
local k, a = 1, 2 -- the first of the step's keys, and its letter
while a <= most do
  local letter, key = string.lower(ARGV[a]), KEYS[k]
  local guarded, keys, args = letter ~= ARGV[a], 4, 10
  if letter == 'e' then
    keys, args = 3, 6
  elseif letter == 'p' then
    args = 6 + 2 * ARGV[a + 1]
  elseif letter == 'q' then
    keys, args = 3, 4
  end
  local values, first = got, k
  if not got or seen[key] then
    values, first = redis.pcall('MGET', unpack(KEYS, k, k + keys - 1)), 1
  end
  n, seen[key] = n + 1, true
  local held, second, third = values[first], values[first + 1], values[first + 2]
  local mark, why, answer = guarded and text or nil, guarded and refusal or nil, nil
  if values.err then
    answer = values
  elseif letter == 'e' then
    answer = try(endOnly, key, KEYS[k + 1], held, third, ARGV[a + 1], ARGV[a + 2])
    if answer == true then
      answer = {1}
    elseif not answer and not time.err then
      -- uses endHold
      local ending = {life = ARGV[a + 1], always = ARGV[a + 2], undo = ARGV[a + 3], to = ARGV[a + 5]}
      answer = try(endHold, key, KEYS[k + 1], held, third, ending, newStep(time, ARGV[a + 4], mark, print, why))
    end
  elseif time.err then
    answer = nil
  elseif letter == 'k' then
    local its, wanted = {held, second, third, values[first + 3]}, readWanted(key, KEYS[k + 2], ARGV, a)
    answer = not why and try(admitFirst, wanted, its, time)
    if not answer then
      -- uses admit
      answer = try(admit, wanted, its, newStep(time, wanted.proposed, mark, print, why))
    end
  elseif letter == 'p' then
    why = type(mark) == 'table' and mark
    if mark and not why then
      -- uses checkMembership
      why = try(checkMembership, mark, print)
    end
    -- uses renewHold
    answer = try(renewHold, key, KEYS[k + 1], {held, second}, {n = ARGV[a + 1] + 0, args = ARGV, before = a + 1}, newStep(time, ARGV[a + 5], nil, nil, why))
  else
    -- uses confirmHold
    answer = try(confirmHold, key, KEYS[k + 1], {held, second}, {owner = ARGV[a + 1], slots = ARGV[a + 2], token = ARGV[a + 3]}, time)
  end
  said[n] = answer or time
  k, a = k + keys, a + args
end
return said
