-- The procedures. Each call is one transaction. No row stays locked after it,
-- except by hold. A procedure that decides reads the clock after it has locked the
-- row: now() would be when the transaction began.
--
-- Plans use the indexes in order, whatever the statistics of tables are that are nearly
-- empty most of the time: other scans read the rows that the locks of the last minutes
-- left behind, again and again. Each plan is made once.

-- An answer to a request for a lock.
DO $$ BEGIN
  IF to_regtype('@schema@.answer') IS NULL THEN
    CREATE TYPE @schema@.answer AS (
      verdict text,       -- granted, again, busy, buried; gone: the place was lost; kind: the lock is in use as another kind
      token bigint, spare integer, -- of the grant
      ends_in bigint,     -- of the grant, or of the owner in the way
      owner text, meta bytea, -- who is in the way
      position integer,   -- of the place; 0: none
      ahead bigint,       -- the signal that the place waits for; of a grant, the signal that the session took; 0: none
      waited boolean,     -- the call has waited for that signal until it was given or the time was over
      refreshed boolean,  -- the place was made or refreshed
      at bigint,          -- the server's clock
      session integer     -- the server's process
    );
  END IF;
END $$;

-- refused fills in who is in the way of the owner, whose place is mine, and its position.
-- mine is null if it has none.
CREATE OR REPLACE FUNCTION @schema@.refused(l @schema@.locks, mine bigint, p_owner text, at bigint, a @schema@.answer) RETURNS @schema@.answer LANGUAGE plpgsql
AS $$
DECLARE before @schema@.places;
BEGIN
  a.verdict := 'busy'; a.ahead := 0; a.position := 0;
  a.owner := l.owner; a.meta := l.meta; a.ends_in := l.ends - at;
  IF mine IS NOT NULL THEN
    SELECT count(*) INTO a.position FROM places WHERE name = l.name AND seq <= mine AND seq > l.served AND ends > at;
    a.ahead := signal_before(l, mine, at);
  END IF;
  IF l.owner IS NULL THEN -- the lock is free for a waiter that barges
    SELECT * INTO before FROM places WHERE name = l.name AND seq > l.served AND owner <> p_owner AND ends > at ORDER BY seq LIMIT 1;
    a.owner := before.owner; a.meta := before.meta; a.ends_in := before.ends - at;
  END IF;
  RETURN a;
END $$;

-- asked is ask for a lock that may be held or waited for.
CREATE OR REPLACE FUNCTION @schema@.asked(p_name bytea, p_owner text, p_attempt text, p_meta bytea, p_ttl bigint, p_spare integer,
  p_wait boolean, p_barge boolean, p_durable boolean, p_signal bigint) RETURNS @schema@.answer
LANGUAGE plpgsql SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; a answer; strong boolean; had_line boolean; mine bigint; alive boolean := false;
BEGIN
  a.session := pg_backend_pid(); a.refreshed := false; a.waited := false;
  a.spare := 0;
  SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1;
  a.at := clock();
  IF l.owner = '' AND l.ends > a.at THEN a.verdict := 'kind'; RETURN a; END IF;
  strong := l.owner IS NULL OR l.owner = p_owner OR l.ends <= a.at;
  IF NOT strong AND NOT p_wait AND NOT is_buried(l, attempt_of(p_owner, p_attempt), a.at) THEN
    IF l.line THEN SELECT seq INTO mine FROM places WHERE name = p_name AND owner = p_owner AND ends > a.at; END IF;
    RETURN refused(l, mine, p_owner, a.at, a);
  END IF;
  l := locked(p_name, strong);
  LOOP
    IF l.name IS NULL THEN
      INSERT INTO locks (name, token) VALUES (p_name, 0) ON CONFLICT DO NOTHING;
    ELSE
      a.at := clock();
      EXIT WHEN strong OR l.owner IS NOT NULL AND l.ends > a.at AND l.owner <> p_owner;
    END IF;
    strong := true;
    l := locked(p_name, strong);
  END LOOP;
  IF l.owner = '' AND l.ends > a.at THEN a.verdict := 'kind'; RETURN a; END IF;
  IF l.buried > a.at AND is_buried(l, attempt_of(p_owner, p_attempt), a.at) THEN a.verdict := 'buried'; RETURN a; END IF;
  IF strong AND (NOT p_barge OR NOT p_wait) THEN
    l := settled(l, a.at, p_owner);
  ELSIF l.ends <= a.at THEN
    l.owner := NULL;
  END IF;

  IF l.owner = p_owner THEN
    a.verdict := 'again';
    IF p_attempt <> '' AND p_attempt <> l.made THEN l.made := ''; END IF;
    IF l.ends < a.at + p_ttl THEN l.ends := a.at + p_ttl; END IF;
    a.token := l.granted; a.spare := l.spare; a.ends_in := l.ends - a.at;
    PERFORM begin_step(p_durable);
    PERFORM kept(l);
    RETURN a;
  END IF;

  IF l.owner IS NULL AND (p_barge OR NOT p_wait OR NOT l.line OR NOT EXISTS (
      SELECT FROM places p WHERE p.name = p_name AND p.seq > l.served AND p.owner <> p_owner AND p.ends > a.at AND p.seq <
        coalesce((SELECT q.seq FROM places q WHERE q.name = p_name AND q.owner = p_owner), 9223372036854775807))) THEN
    IF l.line THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;
    l := drawn(l, p_spare, a.at);
    l.owner := p_owner; l.made := p_attempt; l.meta := p_meta; l.ends := a.at + p_ttl; l.signal := 0;
    IF p_signal <> 0 AND (l.line OR l.waited > a.at - lately()) AND pg_try_advisory_lock(p_signal) THEN l.signal := p_signal; END IF;
    a.verdict := 'granted'; a.token := l.granted; a.spare := l.spare; a.ends_in := p_ttl; a.ahead := l.signal;
    PERFORM begin_step(p_durable);
    PERFORM kept(l);
    RETURN a;
  END IF;

  IF l.line THEN SELECT seq, ends > a.at INTO mine, alive FROM places WHERE name = p_name AND owner = p_owner; END IF;
  IF p_wait THEN
    IF p_signal <> 0 AND NOT pg_try_advisory_lock(p_signal) THEN p_signal := 0; END IF;
    IF alive THEN
      UPDATE places SET ends = greatest(ends, a.at + p_ttl), attempt = p_attempt, meta = p_meta, spare = p_spare, barge = p_barge,
        durable = p_durable, signal = p_signal WHERE name = p_name AND seq = mine;
    ELSE
      IF mine IS NOT NULL THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;
      INSERT INTO places (name, owner, attempt, meta, spare, barge, durable, ends, signal)
      VALUES (p_name, p_owner, p_attempt, p_meta, p_spare, p_barge, p_durable, a.at + p_ttl, p_signal) RETURNING seq INTO mine;
    END IF;
    had_line := l.line AND mine > l.served;
    IF mine <= l.served THEN l.served := 0; END IF; -- the numbers of places began anew
    l.line := true;
    a.refreshed := true;
    IF NOT strong THEN PERFORM begin_loose_step(); END IF;
  ELSIF NOT alive THEN
    mine := NULL;
  END IF;
  IF strong OR NOT had_line THEN PERFORM kept(l); END IF;
  RETURN refused(l, mine, p_owner, a.at, a);
END $$;

-- ask makes one request. With p_wait an owner that is refused gets a place, or has
-- it refreshed, and the session takes p_signal. It also takes p_signal for a grant if
-- somebody waited for the lock lately.
--
-- One statement is enough for a free lock that nobody waits for. Nothing ends there, so
-- the clock may be read before the row is locked. ask does not set the search path, which
-- would take 10 of its 110 us, and has no variables of composite types, which would take
-- 20. It therefore gives full names to all that it uses, operators and types included.
CREATE OR REPLACE FUNCTION @schema@.ask(p_name bytea, p_owner text, p_attempt text, p_meta bytea, p_ttl bigint, p_spare integer,
  p_wait boolean, p_barge boolean, p_durable boolean, p_signal bigint) RETURNS @schema@.answer
LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE at bigint; spares integer; setting pg_catalog.text;
BEGIN
  IF NOT @schema@.sees_commits() THEN
    RAISE EXCEPTION 'a lock needs a transaction at isolation level READ COMMITTED' USING ERRCODE = 'LH001';
  END IF;
  setting := @schema@.commits(p_durable);
  at := @schema@.clock();
  spares := @schema@.spare_tokens(at, p_spare, at);
  UPDATE @schema@.locks SET owner = p_owner, made = p_attempt, meta = p_meta, ends = at OPERATOR(pg_catalog.+) p_ttl, signal = 0,
    granted = at, spare = spares, token = at OPERATOR(pg_catalog.+) spares, era = @schema@.next_era(era, at)
  WHERE ctid OPERATOR(pg_catalog.=) (SELECT r.ctid FROM @schema@.locks r WHERE r.name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY r.era DESC LIMIT 1)
    AND @schema@.is_idle(owner, line, buried, waited, token, at);
  IF FOUND THEN
    RETURN ROW('granted', at, spares, p_ttl, NULL, NULL, NULL, 0, false, false, at, pg_catalog.pg_backend_pid())::@schema@.answer;
  END IF;
  RETURN @schema@.asked(p_name, p_owner, p_attempt, p_meta, p_ttl, p_spare, p_wait, p_barge, p_durable, p_signal);
END $$;

-- awaited is await for a waiter that was not handed the lock.
CREATE OR REPLACE FUNCTION @schema@.awaited(p_name bytea, p_owner text, p_ttl bigint, p_signal bigint, p_waited boolean, p_woken boolean) RETURNS @schema@.answer
LANGUAGE plpgsql SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; p places; a answer; strong boolean;
BEGIN
  PERFORM begin_loose_step();
  a.session := pg_backend_pid(); a.spare := 0; a.refreshed := false; a.waited := p_waited;
  SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1;
  a.at := clock();
  SELECT * INTO p FROM places WHERE name = p_name AND owner = p_owner;
  IF NOT p_woken AND p.seq IS NOT NULL AND p.ends - a.at > p_ttl - p_ttl / 8 AND p.signal = p_signal AND l.owner IS NOT NULL AND l.ends > a.at THEN
    RETURN refused(l, p.seq, p_owner, a.at, a);
  END IF;

  strong := l.owner IS NULL OR l.ends <= a.at;
  LOOP
    l := locked(p_name, strong);
    a.at := clock();
    EXIT WHEN strong OR l.name IS NULL OR l.owner IS NOT NULL AND l.ends > a.at;
    strong := true;
  END LOOP;
  IF l.name IS NOT NULL AND strong THEN
    l := settled(l, a.at, p_owner);
    PERFORM kept(l);
  END IF;
  IF l.owner = p_owner AND l.ends > a.at THEN
    a.verdict := 'again'; a.token := l.granted; a.spare := l.spare; a.ends_in := l.ends - a.at;
    RETURN a;
  END IF;
  IF p_signal <> 0 AND p.signal <> p_signal AND NOT pg_try_advisory_lock(p_signal) THEN p_signal := 0; END IF;
  UPDATE places SET ends = greatest(ends, a.at + p_ttl), signal = p_signal WHERE name = p_name AND owner = p_owner AND ends > a.at;
  IF NOT FOUND THEN a.verdict := 'gone'; RETURN a; END IF;
  a.refreshed := true;
  RETURN refused(l, p.seq, p_owner, a.at, a);
END $$;

-- brief is how long a call of await blocks, unless it can be patient.
CREATE OR REPLACE FUNCTION @schema@.brief() RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN 900000::bigint;

-- patience is for how long a waiter can block behind another one whose place lasts until that
-- time: until then, if it was patient already when its statement began. Otherwise it is brief,
-- and the session becomes patient if it can. A patient session notices while it
-- blocks that its client is gone. If it did not, the lock could be handed to a process that is
-- dead. No session is patient where the server logs long waits or limits transactions.
CREATE OR REPLACE FUNCTION @schema@.patience(until bigint, at bigint) RETURNS bigint LANGUAGE plpgsql
AS $$
DECLARE checks pg_catalog.text := pg_catalog.current_setting('client_connection_check_interval', true);
  longest pg_catalog.text := pg_catalog.current_setting('transaction_timeout', true);
BEGIN
  IF pg_catalog.current_setting('log_lock_waits') OPERATOR(pg_catalog.=) 'on' OR checks IS NULL THEN RETURN @schema@.brief(); END IF;
  IF longest OPERATOR(pg_catalog.<>) '0' THEN RETURN @schema@.brief(); END IF;
  IF checks OPERATOR(pg_catalog.=) '900ms' THEN RETURN until OPERATOR(pg_catalog.-) at; END IF;
  BEGIN
    checks := pg_catalog.set_config('client_connection_check_interval', '900ms', false);
  EXCEPTION WHEN invalid_parameter_value THEN NULL; -- this server cannot do so, as on Windows
  END;
  RETURN @schema@.brief();
END $$;

-- await looks whether a waiter has been handed the lock. If not, and if p_block is
-- positive, it first waits until the session of the one before it (see signal_before) gives
-- its signal: because it released the lock or left the queue, or because it is gone. The signal
-- is a hint, and the rows decide. It waits for at most p_block microseconds, not
-- beyond the end of the lease or the place that it waits for, and for at most half of
-- statement_timeout, which would end the session's signal with the call. The first waiter
-- waits briefly: the lease before it may be broken, or released by another process, while the
-- session of the holder lasts. A waiter that becomes the first while it blocks goes on to the
-- end of its call: to look each 0.9 seconds takes as much of the server's time as a call.
-- p_signal replaces the signal of the
-- place: the session takes it if that is a new one.
--
-- Like ask, it uses full names. Unlike ask, it reads places, which come and go: their table has
-- many pages for few rows, so it sets how plans are made, and so does passed_on.
CREATE OR REPLACE FUNCTION @schema@.await(p_name bytea, p_owner text, p_ttl bigint, p_block bigint, p_signal bigint) RETURNS @schema@.answer
LANGUAGE plpgsql SECURITY DEFINER SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE at bigint; l_owner pg_catalog.text; l_ends bigint; l_signal bigint; l_granted bigint; l_spare integer;
  ahead bigint; until bigint; setting pg_catalog.text; waited boolean := false; woken boolean := false; long pg_catalog.text;
BEGIN
  IF NOT @schema@.sees_commits() THEN
    RAISE EXCEPTION 'a lock needs a transaction at isolation level READ COMMITTED' USING ERRCODE = 'LH001';
  END IF;
  at := @schema@.clock();
  IF p_block OPERATOR(pg_catalog.>) 0 THEN
    -- The second subquery is signal_before.
    SELECT l.owner, l.ends, l.signal, b.signal, b.ends
      INTO l_owner, l_ends, l_signal, ahead, until
      FROM (SELECT * FROM @schema@.locks r WHERE r.name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY r.era DESC LIMIT 1) l, @schema@.places p
      LEFT JOIN LATERAL (SELECT q.signal, q.ends FROM @schema@.places q WHERE q.name OPERATOR(pg_catalog.=) p_name AND q.seq OPERATOR(pg_catalog.<) p.seq
          AND q.seq OPERATOR(pg_catalog.>) l.served AND q.ends OPERATOR(pg_catalog.>) at AND q.signal OPERATOR(pg_catalog.<>) 0 ORDER BY q.seq DESC LIMIT 1) b ON true
      WHERE p.name OPERATOR(pg_catalog.=) p_name AND p.owner OPERATOR(pg_catalog.=) p_owner;
    IF l_owner IS NOT NULL AND l_ends OPERATOR(pg_catalog.>) at THEN
      IF ahead IS NULL THEN
        ahead := l_signal;
        p_block := least(p_block, @schema@.brief(), l_ends OPERATOR(pg_catalog.-) at);
      ELSIF p_block OPERATOR(pg_catalog.>) @schema@.brief() THEN
        p_block := least(p_block, @schema@.patience(until, at));
      END IF;
      IF ahead OPERATOR(pg_catalog.<>) 0 THEN
        waited := true;
        long := pg_catalog.current_setting('statement_timeout');
        IF long OPERATOR(pg_catalog.<>) '0' THEN
          p_block := least(p_block, (extract(epoch FROM long::interval) OPERATOR(pg_catalog.*) 500000)::bigint);
        END IF;
        long := pg_catalog.current_setting('lock_timeout');
        -- An assignment takes less time than PERFORM.
        BEGIN
          setting := pg_catalog.set_config('lock_timeout', greatest(1, (p_block OPERATOR(pg_catalog.+) 999) OPERATOR(pg_catalog./) 1000)::pg_catalog.text, true);
          woken := pg_catalog.pg_advisory_xact_lock_shared(ahead) IS NOT NULL;
          setting := pg_catalog.set_config('lock_timeout', long, true);
          woken := true;
        EXCEPTION WHEN lock_not_available THEN NULL; -- which restores lock_timeout, too
        END;
      END IF;
    END IF;
  END IF;
  -- A session gives its signal when its release has been committed, so most looks need
  -- to write nothing.
  SELECT owner, ends, granted, spare INTO l_owner, l_ends, l_granted, l_spare FROM @schema@.locks
    WHERE name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY era DESC LIMIT 1;
  at := @schema@.clock();
  IF l_owner OPERATOR(pg_catalog.=) p_owner AND l_ends OPERATOR(pg_catalog.>) at THEN
    RETURN ROW('again', l_granted, l_spare, l_ends OPERATOR(pg_catalog.-) at, NULL, NULL, NULL, 0, waited, false, at, pg_catalog.pg_backend_pid())::@schema@.answer;
  END IF;
  RETURN @schema@.awaited(p_name, p_owner, p_ttl, p_signal, waited, woken);
END $$;

-- released is release for any lock, once the session has given its signal.
CREATE OR REPLACE FUNCTION @schema@.released(p_name bytea, p_owner text, p_attempt text, p_undo boolean, p_tomb bigint, p_always boolean,
  OUT done boolean, OUT at bigint)
LANGUAGE plpgsql SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; strong boolean;
BEGIN
  SELECT * INTO l FROM locks WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = p_name ORDER BY r.era DESC LIMIT 1) AND owner = p_owner FOR UPDATE;
  strong := FOUND;
  IF NOT FOUND THEN
    SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1;
    strong := l.owner IS NULL OR l.ends <= clock();
    l := locked(p_name, strong);
  END IF;
  LOOP
    IF l.name IS NULL AND p_tomb > 0 THEN
      INSERT INTO locks (name, token) VALUES (p_name, 0) ON CONFLICT DO NOTHING;
    ELSE
      at := clock();
      EXIT WHEN strong OR l.name IS NULL OR l.owner IS NOT NULL AND l.ends > at AND l.owner <> p_owner;
    END IF;
    strong := true;
    l := locked(p_name, strong);
  END LOOP;
  done := coalesce(l.owner = p_owner AND l.ends > at, false)
    AND ends_lease(l.made, p_attempt, p_undo);
  IF l.name IS NOT NULL THEN
    IF done THEN l.ends := at; END IF;
    IF l.line AND NOT done THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;
    IF p_tomb > 0 AND (p_always OR NOT done) THEN l := bury(l, attempt_of(p_owner, p_attempt), at + p_tomb); END IF;
    IF strong THEN l := settled(l, at, p_owner); END IF;
    IF strong OR p_tomb > 0 THEN PERFORM kept(l); END IF;
  END IF;
END $$;

-- release ends the owner's lease, or its place, and hands the lock on. It leaves
-- alone a lease that another attempt of the owner made, or, with p_undo, one that
-- another attempt has joined. If p_tomb is positive, the attempt is then refused for
-- that long, if it had no lease or if p_always is set: a request of its own may yet
-- arrive. If p_signal is not 0, the session took it before, and gives it with the
-- commit.
--
-- Like ask, it does what is most frequent itself, and uses full names: it frees a lock that
-- nobody waits for, or hands the lock to the first waiter if that one is alive.
CREATE OR REPLACE FUNCTION @schema@.release(p_name bytea, p_owner text, p_attempt text, p_undo boolean, p_tomb bigint, p_always boolean, p_signal bigint,
  OUT done boolean, OUT at bigint, OUT session integer)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE l_row pg_catalog.tid; l_line boolean; l_ends bigint; l_token bigint; l_served bigint; l_made pg_catalog.text; setting pg_catalog.text; given boolean;
BEGIN
  IF NOT @schema@.sees_commits() THEN
    RAISE EXCEPTION 'a lock needs a transaction at isolation level READ COMMITTED' USING ERRCODE = 'LH001';
  END IF;
  session := pg_catalog.pg_backend_pid();
  IF p_signal OPERATOR(pg_catalog.<>) 0 THEN
    -- What the transaction locks, too, stays locked until it has been committed. So the
    -- waiter that is woken finds the hand-over.
    given := pg_catalog.pg_try_advisory_xact_lock(p_signal);
    given := pg_catalog.pg_advisory_unlock(p_signal);
  END IF;
  SELECT ctid, line, ends, token, served, made INTO l_row, l_line, l_ends, l_token, l_served, l_made FROM @schema@.locks
    WHERE ctid OPERATOR(pg_catalog.=) (SELECT r.ctid FROM @schema@.locks r WHERE r.name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY r.era DESC LIMIT 1) AND owner OPERATOR(pg_catalog.=) p_owner FOR UPDATE;
  IF FOUND AND p_tomb OPERATOR(pg_catalog.<=) 0 THEN
    at := @schema@.clock();
    done := l_ends OPERATOR(pg_catalog.>) at AND @schema@.ends_lease(l_made, p_attempt, p_undo);
    IF done AND l_line THEN
      IF @schema@.passed_on(p_name, p_owner, l_row, l_token, l_served, at) THEN RETURN; END IF;
    ELSIF done THEN
      setting := @schema@.loosens();
      UPDATE @schema@.locks SET owner = NULL, ends = release.at, signal = 0 WHERE ctid OPERATOR(pg_catalog.=) l_row;
      RETURN;
    END IF;
  END IF;
  -- A release that is lost in a crash leaves the lock taken until its TTL is over,
  -- so nothing but a hand-over has to be on disk.
  setting := @schema@.loosens();
  SELECT r.done, r.at INTO done, at FROM @schema@.released(p_name, p_owner, p_attempt, p_undo, p_tomb, p_always) r;
END $$;

-- release_and_rejoin is release, followed by a place for the owner p_next if the lock has
-- passed to another owner. The session takes p_next_signal for the place. Like release, it
-- hands the lock to the first waiter itself.
CREATE OR REPLACE FUNCTION @schema@.release_and_rejoin(p_name bytea, p_owner text, p_attempt text, p_undo boolean, p_tomb bigint, p_always boolean, p_signal bigint,
  p_next text, p_next_attempt text, p_meta bytea, p_ttl bigint, p_spare integer, p_barge boolean, p_durable boolean, p_next_signal bigint,
  OUT done boolean, OUT standing boolean, OUT at bigint, OUT session integer)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE l_row pg_catalog.tid; l_owner pg_catalog.text; l_ends bigint; l_line boolean; l_token bigint; l_served bigint; mine bigint; l_made pg_catalog.text; given boolean;
BEGIN
  IF NOT @schema@.sees_commits() THEN
    RAISE EXCEPTION 'a lock needs a transaction at isolation level READ COMMITTED' USING ERRCODE = 'LH001';
  END IF;
  session := pg_catalog.pg_backend_pid();
  IF p_signal OPERATOR(pg_catalog.<>) 0 THEN -- as in release
    given := pg_catalog.pg_try_advisory_xact_lock(p_signal);
    given := pg_catalog.pg_advisory_unlock(p_signal);
  END IF;
  standing := false;
  SELECT ctid, line, ends, token, served, made INTO l_row, l_line, l_ends, l_token, l_served, l_made FROM @schema@.locks
    WHERE ctid OPERATOR(pg_catalog.=) (SELECT r.ctid FROM @schema@.locks r WHERE r.name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY r.era DESC LIMIT 1) AND owner OPERATOR(pg_catalog.=) p_owner FOR UPDATE;
  IF FOUND AND l_line AND p_tomb OPERATOR(pg_catalog.<=) 0 THEN
    at := @schema@.clock();
    IF l_ends OPERATOR(pg_catalog.>) at AND @schema@.ends_lease(l_made, p_attempt, p_undo) THEN
      standing := @schema@.passed_on(p_name, p_owner, l_row, l_token, l_served, at);
    END IF;
  END IF;
  done := standing;
  IF NOT standing THEN
    SELECT r.done, r.at INTO done, at FROM @schema@.release(p_name, p_owner, p_attempt, p_undo, p_tomb, p_always, 0) r;
    SELECT owner, ends, line INTO l_owner, l_ends, l_line FROM @schema@.locks
      WHERE name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY era DESC LIMIT 1;
    standing := coalesce(done AND l_owner IS NOT NULL AND l_ends OPERATOR(pg_catalog.>) at, false);
    IF NOT standing THEN RETURN; END IF;
  END IF;
  IF p_next_signal OPERATOR(pg_catalog.<>) 0 AND NOT pg_catalog.pg_try_advisory_lock(p_next_signal) THEN p_next_signal := 0; END IF;
  INSERT INTO @schema@.places (name, owner, attempt, meta, spare, barge, durable, ends, signal)
  VALUES (p_name, p_next, p_next_attempt, p_meta, p_spare, p_barge, p_durable, release_and_rejoin.at OPERATOR(pg_catalog.+) p_ttl, p_next_signal) RETURNING seq INTO mine;
  IF NOT l_line OR mine OPERATOR(pg_catalog.<=) l_served THEN -- see ask
    UPDATE @schema@.locks SET line = true, served = 0
    WHERE ctid OPERATOR(pg_catalog.=) (SELECT r.ctid FROM @schema@.locks r WHERE r.name OPERATOR(pg_catalog.||) '' OPERATOR(pg_catalog.=) p_name ORDER BY r.era DESC LIMIT 1);
  END IF;
END $$;

-- renew makes leases last at least their TTLs. The lists are separated by spaces;
-- names are in hexadecimal. held has an answer for each, in the same order: f, not
-- held; t, renewed; w, renewed, and waiters wait for a signal that nobody took.
CREATE OR REPLACE FUNCTION @schema@.renew(p_names text, p_owners text, p_ttls text, p_durable boolean,
  OUT held text, OUT at bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  names text[] := string_to_array(p_names, ' '); owners text[] := string_to_array(p_owners, ' ');
  ttls text[] := string_to_array(p_ttls, ' '); result text[]; i integer; l locks;
BEGIN
  PERFORM begin_step(p_durable);
  -- All sessions lock rows in the same order, so they do not wait for each other.
  FOR i IN SELECT n FROM generate_subscripts(names, 1) n ORDER BY decode(names[n], 'hex') LOOP
    l := locked(decode(names[i], 'hex'), false);
    at := clock();
    IF l.buried > at AND is_buried(l, attempt_of(l.owner, l.made), at) THEN
      result[i] := 'f'; -- it was broken
    ELSIF l.owner = owners[i] AND l.ends > at THEN
      UPDATE locks SET ends = greatest(ends, at + ttls[i]::bigint) WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = l.name ORDER BY r.era DESC LIMIT 1);
      result[i] := CASE WHEN l.line AND l.signal = 0 THEN 'w' ELSE 't' END;
    ELSE
      result[i] := 'f';
    END IF;
  END LOOP;
  at := clock();
  held := array_to_string(result, '');
END $$;

-- take_signal makes the session take p_signal for the owner's lease, so that the
-- next waiter can wait for it.
CREATE OR REPLACE FUNCTION @schema@.take_signal(p_name bytea, p_owner text, p_signal bigint,
  OUT taken boolean, OUT session integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  PERFORM begin_loose_step();
  session := pg_backend_pid(); taken := false;
  IF NOT pg_try_advisory_lock(p_signal) THEN RETURN; END IF;
  UPDATE locks SET signal = p_signal WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = p_name ORDER BY r.era DESC LIMIT 1) AND owner = p_owner AND signal = 0 AND ends > clock();
  taken := FOUND;
  IF NOT taken THEN PERFORM pg_advisory_unlock(p_signal); END IF;
END $$;

-- reserve reserves up to p_count tokens above p_above for the owner's lease.
CREATE OR REPLACE FUNCTION @schema@.reserve(p_name bytea, p_owner text, p_above bigint, p_count integer, p_durable boolean,
  OUT held boolean, OUT token bigint, OUT count integer, OUT waiting boolean, OUT at bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks;
BEGIN
  PERFORM begin_step(p_durable);
  l := locked(p_name, false);
  at := clock();
  held := coalesce(l.owner = p_owner AND l.ends > at AND (l.buried <= at OR NOT is_buried(l, attempt_of(l.owner, l.made), at)), false);
  waiting := coalesce(l.line, false);
  IF NOT held THEN RETURN; END IF;
  l.token := greatest(l.token, p_above);
  token := greatest(l.token + 1, at);
  count := least(p_count::bigint, greatest(1, at + 1000001 - token))::integer;
  UPDATE locks SET token = reserve.token + reserve.count - 1 WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = p_name ORDER BY r.era DESC LIMIT 1);
  IF waiting THEN
    waiting := EXISTS (SELECT FROM places p WHERE p.name = p_name AND p.seq > l.served AND p.ends > reserve.at);
  END IF;
END $$;

-- break_lease takes the lease away from its owner: a tombstone refuses to renew it, and
-- requests of the owner, for as long as it can last. With p_now it ends. Like every step it
-- hands on a lock that is free. The first note about a lease is kept. left_in is how long the lease can
-- last. broke is false if the owner has no lease with that token, and had none that was
-- broken last.
CREATE OR REPLACE FUNCTION @schema@.break_lease(p_name bytea, p_owner text, p_token bigint, p_now boolean, p_note bytea, p_keep bigint,
  OUT broke boolean, OUT left_in bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
DECLARE l locks; at bigint;
BEGIN
  PERFORM begin_step(true);
  l := locked(p_name, true);
  at := clock();
  IF l.owner = '' AND l.ends > at THEN
    SELECT k.broke, k.left_in INTO broke, left_in FROM break_kind(l, p_owner, p_token, p_now, p_note, p_keep, at) k;
    RETURN;
  END IF;
  left_in := 0;
  broke := coalesce(l.owner = p_owner AND l.ends > at AND l.granted = p_token, false);
  IF NOT broke THEN
    broke := EXISTS (SELECT FROM breaks b WHERE b.name = p_name AND b.owner = p_owner AND b.token = p_token AND b.ends > at);
  ELSE
    INSERT INTO breaks (name, owner, token, note, ends) VALUES (p_name, p_owner, p_token, p_note, l.ends + p_keep)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, note = excluded.note, ends = excluded.ends
      WHERE breaks.owner <> excluded.owner OR breaks.token <> excluded.token;
    l := bury(l, attempt_of(p_owner, l.made), l.ends);
    IF p_now THEN l.ends := at; ELSE left_in := l.ends - at; END IF;
  END IF;
  IF l.name IS NOT NULL THEN
    l := settled(l, at, '');
    PERFORM begin_step(true);
    PERFORM kept(l);
  END IF;
END $$;

-- inspect returns the leases of a lock, with position 0, and the places of its
-- waiters. A free lock without waiters has no row. The lease that was broken last has
-- position -1, and the note about it instead of a description. lim is null for a mutex.
CREATE OR REPLACE FUNCTION @schema@.inspect(p_name bytea, p_most integer)
RETURNS TABLE ("position" bigint, owner text, meta bytea, token bigint, ends_in bigint,
  lim bigint, shared boolean, weight bigint, slot bigint, held_for bigint, broken boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
DECLARE t bigint := clock();
BEGIN
  RETURN QUERY SELECT 0::bigint, l.owner, l.meta, l.granted, l.ends - t, NULL::bigint, false, 1::bigint, 0::bigint, NULL::bigint, false
    FROM locks l WHERE l.name = p_name AND l.owner <> '' AND l.ends > t;
  RETURN QUERY SELECT 0::bigint, h.owner, h.meta, h.token, h.ends - t, l.lim, l.shared, h.weight, h.slot, t - h.began, h.broken
    FROM locks l JOIN holds h ON h.name = l.name WHERE l.name = p_name AND l.owner = '' AND l.ends > t AND h.ends > t ORDER BY h.seq;
  RETURN QUERY SELECT row_number() OVER (ORDER BY p.seq), p.owner, p.meta, 0::bigint, p.ends - t, NULL::bigint, false, 1::bigint, 0::bigint, NULL::bigint, false
    FROM places p WHERE p.name = p_name AND p.ends > t ORDER BY p.seq LIMIT p_most;
  RETURN QUERY SELECT row_number() OVER (ORDER BY w.seq), w.owner, w.meta, 0::bigint, w.ends - t, l.lim, l.shared, w.weight, 0::bigint, NULL::bigint, false
    FROM locks l JOIN waits w ON w.name = l.name WHERE l.name = p_name AND l.owner = '' AND l.ends > t AND w.ends > t ORDER BY w.seq LIMIT p_most;
  RETURN QUERY SELECT -1::bigint, b.owner, b.note, b.token, 0::bigint, NULL::bigint, false, 1::bigint, 0::bigint, NULL::bigint, false
    FROM breaks b WHERE b.name = p_name AND b.ends > t;
END $$;

-- list returns the locks that are held, whose names start with p_prefix and follow
-- p_after, in the order of their names: a row for each lease, as inspect has it. A lock
-- that is only waited for has one row, without an owner.
CREATE OR REPLACE FUNCTION @schema@.list(p_prefix bytea, p_after bytea, p_most integer)
RETURNS TABLE (name bytea, owner text, meta bytea, token bigint, ends_in bigint,
  lim bigint, shared boolean, weight bigint, slot bigint, held_for bigint, broken boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
DECLARE t bigint := clock();
BEGIN
  RETURN QUERY SELECT l.name, CASE WHEN l.owner = '' THEN h.owner ELSE l.owner END, coalesce(h.meta, l.meta), coalesce(h.token, l.granted),
      coalesce(h.ends, l.ends) - t, CASE WHEN l.owner = '' THEN l.lim END, l.shared, h.weight, h.slot, t - h.began, h.broken
    FROM (SELECT * FROM locks o WHERE o.name >= p_prefix AND o.name > p_after AND substring(o.name FROM 1 FOR octet_length(p_prefix)) = p_prefix
      AND o.owner IS NOT NULL AND o.ends > t ORDER BY o.name LIMIT p_most) l
    LEFT JOIN holds h ON h.name = l.name AND l.owner = '' AND h.ends > t ORDER BY l.name, h.seq;
END $$;

-- hold checks, inside a transaction of the caller's, that the owner's lease is the
-- current one, and keeps the lock from being granted to another owner until that
-- transaction ends. The lease can be renewed meanwhile. No statement of the
-- transaction, and no pause in it, may from now on last longer than the lease has
-- left. If the lease is over, the transaction fails.
CREATE OR REPLACE FUNCTION @schema@.hold(p_name bytea, p_owner text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
DECLARE l locks; guc text; bound bigint; present bigint;
BEGIN
  SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1 FOR KEY SHARE;
  bound := l.ends - clock();
  IF l.owner = '' AND bound > 0 THEN
    RAISE EXCEPTION 'the lock is in use as another kind than a mutex, and only the lease of a mutex can be held in a transaction' USING ERRCODE = 'LH005';
  END IF;
  IF l.owner IS NULL OR l.owner <> p_owner OR bound <= 0 THEN
    RAISE EXCEPTION 'the lease of this owner is over, so this transaction cannot be committed' USING ERRCODE = 'LH002';
  END IF;
  -- transaction_timeout exists since PostgreSQL 17.
  FOREACH guc IN ARRAY ARRAY['statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout'] LOOP
    present := extract(epoch FROM current_setting(guc, true)::interval) * 1000;
    IF present = 0 OR present > bound / 1000 THEN
      PERFORM set_config(guc, least(greatest(1, bound / 1000), 2147483647)::text, true);
    END IF;
  END LOOP;
  RETURN bound;
END $$;

-- sweep forgets locks that have been free for a day and whose tokens are behind the
-- clock, with the places of their waiters, who are dead, and what has ended. It passes over
-- rows that are in use, and reports how many rows it has deleted.
CREATE OR REPLACE FUNCTION @schema@.sweep(p_most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
DECLARE past bigint := clock() - 86400000000; n integer; m integer;
BEGIN
  PERFORM begin_loose_step();
  DELETE FROM locks WHERE name IN (
    SELECT l.name FROM locks l WHERE l.ends < past AND l.buried < past AND l.token < past
      AND NOT EXISTS (SELECT FROM places p WHERE p.name = l.name AND p.ends >= past) LIMIT p_most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS n = ROW_COUNT;
  DELETE FROM places p WHERE p.ends < past AND NOT EXISTS (SELECT FROM locks l WHERE l.name = p.name);
  GET DIAGNOSTICS m = ROW_COUNT;
  n := n + m;
  DELETE FROM tombs WHERE (name, owner) IN (SELECT t.name, t.owner FROM tombs t WHERE t.ends < past LIMIT p_most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS m = ROW_COUNT;
  n := n + m;
  DELETE FROM holds h WHERE h.ends < past AND NOT EXISTS (SELECT FROM locks l WHERE l.name = h.name);
  GET DIAGNOSTICS m = ROW_COUNT;
  n := n + m;
  DELETE FROM waits w WHERE w.ends < past AND NOT EXISTS (SELECT FROM locks l WHERE l.name = w.name);
  GET DIAGNOSTICS m = ROW_COUNT;
  n := n + m;
  DELETE FROM breaks WHERE name IN (SELECT b.name FROM breaks b WHERE b.ends < clock() LIMIT p_most FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS m = ROW_COUNT;
  RETURN n + m;
END $$;

-- longest_ttl records p_ttl if it is the longest TTL, and returns the longest.
CREATE OR REPLACE FUNCTION @schema@.longest_ttl(p_ttl bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
BEGIN
  PERFORM begin_step(false);
  IF p_ttl > 0 THEN UPDATE meta SET longest = p_ttl WHERE longest < p_ttl; END IF;
  RETURN (SELECT longest FROM meta);
END $$;

-- server reports what the server promises.
CREATE OR REPLACE FUNCTION @schema@.server(OUT version integer, OUT oldest integer, OUT server_version integer, OUT in_recovery boolean,
  OUT fsync text, OUT synchronous_commit text, OUT full_page_writes text, OUT synchronous_standby_names text,
  OUT standbys integer, OUT isolation text, OUT at bigint, OUT session integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp
AS $$
BEGIN
  SELECT m.version, m.oldest INTO version, oldest FROM meta m;
  server_version := current_setting('server_version_num');
  in_recovery := pg_is_in_recovery();
  fsync := current_setting('fsync');
  synchronous_commit := current_setting('synchronous_commit');
  full_page_writes := current_setting('full_page_writes');
  synchronous_standby_names := current_setting('synchronous_standby_names');
  -- A backup and a subscriber of logical replication cannot take over.
  SELECT pg_catalog.count(*) INTO standbys FROM pg_stat_replication r
    LEFT JOIN pg_replication_slots s ON s.active_pid = r.pid
    WHERE r.state IS DISTINCT FROM 'backup' AND s.slot_type IS DISTINCT FROM 'logical';
  isolation := current_setting('transaction_isolation');
  at := clock();
  session := pg_backend_pid();
END $$;
