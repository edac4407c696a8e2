-- The mark nearly always says that this list is served, and since when: 16 digits.
local served = mark and string.sub(mark, 18, 17 + #ARGV[7]) == ARGV[7] and string.byte(mark, 18 + #ARGV[7]) == 32
