-- The steps that procedures have in common. Only the procedures call them, with the
-- schema in the search path. Procedures that do not set it, as ask, call only those that
-- are expressions (RETURN): these become part of the caller's plan, and mean what they
-- meant when they were installed. A function with plans of its own would plan again
-- whenever the path is another one than at its last call. passed_on and patience have such
-- plans, and only procedures that do not set the path call them.

-- clock is the server's clock, as it is when the expression is evaluated.
CREATE OR REPLACE FUNCTION @schema@.clock() RETURNS bigint LANGUAGE sql VOLATILE
RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- sees_commits reports whether statements see what others have committed meanwhile.
CREATE OR REPLACE FUNCTION @schema@.sees_commits() RETURNS boolean LANGUAGE sql STABLE
RETURN current_setting('transaction_isolation') IN ('read committed', 'read uncommitted');

-- loosens lets the commit return before it is on disk. It keeps the setting of the session
-- for the rest of the transaction.
CREATE OR REPLACE FUNCTION @schema@.loosens() RETURNS text LANGUAGE sql VOLATILE
RETURN CASE WHEN current_setting('synchronous_commit') <> 'off'
  THEN set_config('leasehold.commit', current_setting('synchronous_commit'), true) || set_config('synchronous_commit', 'off', true) END;

-- commits lets the commit return no earlier than the session's own setting says, and not
-- before it is on disk if durable is set.
CREATE OR REPLACE FUNCTION @schema@.commits(durable boolean) RETURNS text LANGUAGE sql VOLATILE
RETURN CASE WHEN current_setting('synchronous_commit') = 'off' AND (durable OR coalesce(current_setting('leasehold.commit', true), '') <> '')
  THEN set_config('synchronous_commit', coalesce(nullif(current_setting('leasehold.commit', true), ''), 'on'), true) END;

-- begin_step checks what statements see, and says how the transaction commits: see commits.
CREATE OR REPLACE FUNCTION @schema@.begin_step(durable boolean) RETURNS void LANGUAGE plpgsql
AS $$
DECLARE setting text;
BEGIN
  IF NOT sees_commits() THEN
    RAISE EXCEPTION 'a lock needs a transaction at isolation level READ COMMITTED' USING ERRCODE = 'LH001';
  END IF;
  setting := commits(durable);
END $$;

-- begin_loose_step is begin_step for a step that a crash may undo, such as a release.
CREATE OR REPLACE FUNCTION @schema@.begin_loose_step() RETURNS void LANGUAGE plpgsql
AS $$
DECLARE setting text;
BEGIN
  PERFORM begin_step(false);
  setting := loosens();
END $$;

-- locked returns the row of a lock, locked until the transaction ends. A new lease
-- needs for_grant: it waits for transactions that rely on the lease before it (see
-- hold), which renewals and places do not.
CREATE OR REPLACE FUNCTION @schema@.locked(p_name bytea, for_grant boolean) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
DECLARE l @schema@.locks;
BEGIN
  IF for_grant THEN
    SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1 FOR UPDATE;
  ELSE
    SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1 FOR NO KEY UPDATE;
  END IF;
  RETURN l;
END $$;

-- next_token is the token of a grant, given the largest one so far.
CREATE OR REPLACE FUNCTION @schema@.next_token(token bigint, at bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN greatest(token + 1, at);

-- spare_tokens is how many of the spare tokens after it are reserved with a grant: as
-- many as leave the tokens at most a second ahead of the clock.
CREATE OR REPLACE FUNCTION @schema@.spare_tokens(granted bigint, p_spare integer, at bigint) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN least(p_spare::bigint, greatest(0, at + 1000000 - granted))::integer;

-- drawn gives l the next token and spare tokens.
CREATE OR REPLACE FUNCTION @schema@.drawn(l @schema@.locks, p_spare integer, at bigint) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
BEGIN
  l.granted := next_token(l.token, at);
  l.spare := spare_tokens(l.granted, p_spare, at);
  l.token := l.granted + l.spare;
  l.era := next_era(l.era, at);
  RETURN l;
END $$;

-- lately is how long a lock that somebody waited for is expected to be waited for again.
CREATE OR REPLACE FUNCTION @schema@.lately() RETURNS bigint LANGUAGE sql IMMUTABLE
AS $$ SELECT 1000000::bigint $$;

-- is_idle reports whether a lock is free, nobody waits for it, and the clock is the next
-- token, so that one statement can grant it.
CREATE OR REPLACE FUNCTION @schema@.is_idle(owner text, line boolean, buried bigint, waited bigint, token bigint, at bigint) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN owner IS NULL AND NOT line AND buried <= at AND waited <= at - @schema@.lately() AND token < at;

-- next_era is the era of the row of a lock after a grant: in one of 32 grants it is the clock.
-- See locks_newest.
CREATE OR REPLACE FUNCTION @schema@.next_era(era bigint, at bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN CASE WHEN at & 31 = 0 THEN at ELSE era END;

-- ends_lease reports whether a release of an attempt ends the lease that an attempt of the
-- same owner made.
CREATE OR REPLACE FUNCTION @schema@.ends_lease(made text, p_attempt text, p_undo boolean) RETURNS boolean LANGUAGE sql IMMUTABLE
RETURN p_attempt = '' OR made = p_attempt OR made = '' AND NOT p_undo;

-- signal_before is the signal that a place waits for: that of the last living place before
-- it that has one, or else that of the lease; 0: none. A waiter between the two has no
-- signal and looks now and then. If the others behind it did so, too, they would come late.
CREATE OR REPLACE FUNCTION @schema@.signal_before(l @schema@.locks, mine bigint, at bigint) RETURNS bigint LANGUAGE plpgsql
AS $$
BEGIN
  RETURN coalesce((SELECT signal FROM places WHERE name = l.name AND seq < mine AND seq > l.served AND ends > at AND signal <> 0 ORDER BY seq DESC LIMIT 1),
    CASE WHEN l.owner IS NOT NULL THEN l.signal ELSE 0 END);
END $$;

-- takes_over reports whether a release can hand the lock to a waiter: it lives, has a
-- session, and does not barge.
CREATE OR REPLACE FUNCTION @schema@.takes_over(owner text, ends bigint, barge boolean, signal bigint, releaser text, at bigint) RETURNS boolean LANGUAGE sql VOLATILE
RETURN ends > at AND NOT barge AND owner <> releaser AND (signal = 0 OR NOT pg_try_advisory_xact_lock_shared(signal));

-- passed_on hands a lock that its holder releases to the first waiter, if that one can take
-- over. Otherwise it changes nothing. The caller has locked the row.
--
-- Places up to the one that was served last are gone, but their rows and their entries in the
-- index remain for as long as a waiter blocks that saw them. So it starts behind them.
-- It sets how plans are made: see await.
CREATE OR REPLACE FUNCTION @schema@.passed_on(p_name bytea, releaser text, l_row tid, l_token bigint, l_served bigint, at bigint) RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE next_owner pg_catalog.text; next_attempt pg_catalog.text; next_meta pg_catalog.bytea; next_durable boolean; next_ends bigint; next_signal bigint;
  next_seq bigint; drawn bigint; spares integer; setting pg_catalog.text;
BEGIN
  DELETE FROM @schema@.places
    WHERE ctid OPERATOR(pg_catalog.=) (SELECT p.ctid FROM @schema@.places p WHERE p.name OPERATOR(pg_catalog.=) p_name AND p.seq OPERATOR(pg_catalog.>) l_served ORDER BY p.seq LIMIT 1)
      AND @schema@.takes_over(owner, ends, barge, signal, releaser, passed_on.at)
    RETURNING seq, owner, attempt, meta, spare, durable, ends, signal INTO next_seq, next_owner, next_attempt, next_meta, spares, next_durable, next_ends, next_signal;
  IF NOT FOUND THEN RETURN false; END IF;
  drawn := @schema@.next_token(l_token, at);
  spares := @schema@.spare_tokens(drawn, spares, at);
  UPDATE @schema@.locks SET owner = next_owner, made = next_attempt, meta = next_meta, ends = next_ends, signal = next_signal,
    granted = drawn, spare = spares, token = drawn OPERATOR(pg_catalog.+) spares, served = next_seq, era = @schema@.next_era(era, passed_on.at)
  WHERE ctid OPERATOR(pg_catalog.=) l_row;
  setting := @schema@.commits(next_durable);
  RETURN true;
END $$;

-- settled drops the lease of l if it has ended, and hands a free lock to the first
-- living waiter. It passes over a waiter whose session is gone, unless that is the
-- caller. A waiter that barges loses its place and may come for the lock: the lock
-- stays free until the next step. The caller has locked the row for a grant.
CREATE OR REPLACE FUNCTION @schema@.settled(l @schema@.locks, at bigint, caller text) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
DECLARE p @schema@.places;
BEGIN
  IF l.owner IS NOT NULL AND l.ends > at THEN RETURN l; END IF;
  l.owner := NULL; l.signal := 0;
  IF NOT l.line THEN RETURN l; END IF;
  LOOP
    DELETE FROM places WHERE name = l.name AND seq = (SELECT seq FROM places WHERE name = l.name AND seq > l.served ORDER BY seq LIMIT 1) RETURNING * INTO p;
    IF NOT FOUND THEN l.line := false; l.waited := at; RETURN l; END IF;
    l.served := p.seq;
    CONTINUE WHEN p.ends <= at;
    CONTINUE WHEN p.signal <> 0 AND p.owner <> caller AND pg_try_advisory_xact_lock_shared(p.signal);
    IF p.barge THEN RETURN l; END IF;
    l := drawn(l, p.spare, at);
    l.owner := p.owner; l.made := p.attempt; l.meta := p.meta; l.ends := p.ends; l.signal := p.signal;
    PERFORM begin_step(p.durable);
    RETURN l;
  END LOOP;
END $$;

-- kept writes l back.
CREATE OR REPLACE FUNCTION @schema@.kept(l @schema@.locks) RETURNS void LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE locks SET token = l.token, owner = l.owner, made = l.made, meta = l.meta, granted = l.granted, spare = l.spare,
    ends = l.ends, signal = l.signal, line = l.line, buried = l.buried, waited = l.waited, served = l.served, era = l.era
  WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = l.name ORDER BY r.era DESC LIMIT 1);
END $$;

-- attempt_of is what a tombstone refuses.
CREATE OR REPLACE FUNCTION @schema@.attempt_of(p_owner text, p_attempt text) RETURNS text LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN p_attempt = '' THEN p_owner ELSE p_owner || ' ' || p_attempt END $$;

-- is_buried reports whether a tombstone refuses the attempt.
CREATE OR REPLACE FUNCTION @schema@.is_buried(l @schema@.locks, p_attempt text, at bigint) RETURNS boolean LANGUAGE plpgsql
AS $$
BEGIN
  RETURN l.buried > at AND EXISTS (SELECT FROM tombs t WHERE t.name = l.name AND t.owner = p_attempt AND t.ends > at);
END $$;

-- bury leaves a tombstone.
CREATE OR REPLACE FUNCTION @schema@.bury(l @schema@.locks, p_attempt text, p_ends bigint) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO tombs (name, owner, ends) VALUES (l.name, p_attempt, p_ends)
  ON CONFLICT (name, owner) DO UPDATE SET ends = greatest(tombs.ends, excluded.ends);
  l.buried := greatest(l.buried, p_ends);
  RETURN l;
END $$;
