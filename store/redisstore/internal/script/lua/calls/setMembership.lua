-- Make the mark name another membership.
--
-- KEYS: the mark
-- ARGV: the membership's fingerprint; the membership; the fingerprint of a membership that
--       must not be replaced any more; the only one that may be replaced, empty for any;
--       the fingerprint of the membership before, if a majority of it was updated, or empty
-- Returns the result of setMembership.
-- uses setMembership
return setMembership(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
