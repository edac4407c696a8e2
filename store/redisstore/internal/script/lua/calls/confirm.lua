-- Confirm a token.
--
-- KEYS: the lock, its token counter
-- ARGV: value, token (see confirm)
-- Returns the result of confirm.
-- uses confirm
return confirm(KEYS[1], KEYS[2], call('GET', KEYS[1]), ARGV[1], ARGV[2])
