-- Do a list of steps of locks that several can hold, each as its own script would do it. It is
-- steps for such locks; a script of its own keeps steps short. The clock and the mark are read
-- once.
--
-- KEYS, ARGV: as in steps
-- Returns the results of the steps.
-- uses serves, shareStep, try
local most, marked, print, text, refusal = #ARGV, ARGV[1] == '1', nil, nil, nil
local time = redis.pcall('TIME')
if time.err then
  time = nil -- each step reads it
end
if marked then
  print, text, most = ARGV[most - 2], redis.pcall('GET', KEYS[#KEYS]), most - 3
  if type(text) == 'table' then
    refusal = text
  elseif not serves(text, print, ARGV[most + 2], ARGV[most + 3]) then
    -- uses gate
    refusal = try(gate, KEYS[#KEYS], print, ARGV[most + 2], ARGV[most + 3])
  end
end
local said, k, a = {}, 1, 2 -- the first of the step's keys, and its letter
while a <= most do
  local letter, guarded = ARGV[a], string.byte(ARGV[a]) < 97
  local keys, args = 3, 11
  if letter == 'e' or letter == 'E' then
    args = 6
  elseif letter == 'p' or letter == 'P' then
    keys, args = 2, 7
  elseif letter == 'q' then
    keys, args = 2, 4
  end
  local values = redis.pcall('MGET', unpack(KEYS, k, k + keys - 1))
  said[#said + 1] = values.err and values or shareStep(letter, KEYS, k, ARGV, a, values, time, guarded and text or nil, print, guarded and refusal or nil)
  k, a = k + keys, a + args
end
return said
