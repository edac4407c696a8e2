-- The procedures for the locks of other kinds than a mutex: semaphores and read-write
-- locks. While one is in use, its row in locks has the empty owner, which no lease has,
-- and ends when the last of its leases and places does. So its name is not a free mutex,
-- and when the procedures of a mutex find its lease over, nothing is left of it. Each step
-- locks that row first, so that the rows in holds and waits need no locks of their own.
-- Their waiters poll: no session is the one to wait for.

-- An answer to a request for a lock of another kind.
DO $$ BEGIN
  IF to_regtype('@schema@.kind_answer') IS NULL THEN
    CREATE TYPE @schema@.kind_answer AS (
      verdict text,       -- as in answer; mismatch: the lock is in use as another kind; smaller: the owner's lease
                          -- has less weight; mutex: the lock is free or a mutex, as was asked for
      token bigint, spare integer, slot bigint, -- of the grant
      ends_in bigint,     -- of the grant, or of the owner in the way
      owner text, meta bytea, -- who is in the way
      position integer,   -- of the place; 0: none
      lim bigint, shared boolean, -- the kind in use, of a mismatch
      refreshed boolean,  -- the place was made or refreshed
      at bigint           -- the server's clock
    );
  END IF;
END $$;

-- room is the part of the limit that the leases leave.
CREATE OR REPLACE FUNCTION @schema@.room(l @schema@.locks) RETURNS bigint LANGUAGE plpgsql
AS $$
BEGIN
  RETURN l.lim - (SELECT coalesce(sum(weight), 0) FROM holds WHERE name = l.name);
END $$;

-- entered adds a lease. The first reader draws a token, and readers beside it share it.
CREATE OR REPLACE FUNCTION @schema@.entered(l @schema@.locks, p_owner text, p_attempt text, p_meta bytea, p_weight bigint, p_spare integer, p_ends bigint, at bigint) RETURNS @schema@.holds LANGUAGE plpgsql
AS $$
DECLARE h @schema@.holds; reads boolean := l.shared AND p_weight < l.lim;
BEGIN
  IF reads THEN p_spare := 0; END IF;
  IF reads AND EXISTS (SELECT FROM holds WHERE name = l.name) THEN
    h.token := l.token;
  ELSE
    h.token := next_token(l.token, at);
  END IF;
  h.spare := spare_tokens(h.token, p_spare, at);
  h.slot := (SELECT min(c.slot) FROM (SELECT 0::bigint AS slot UNION ALL SELECT o.slot + 1 FROM holds o WHERE o.name = l.name) c
    WHERE NOT EXISTS (SELECT FROM holds o WHERE o.name = l.name AND o.slot = c.slot));
  INSERT INTO holds (name, slot, owner, made, meta, weight, token, spare, began, ends)
  VALUES (l.name, h.slot, p_owner, p_attempt, p_meta, p_weight, h.token, h.spare, at, p_ends);
  RETURN h;
END $$;

-- advanced hands the lock to waiters: as many from the head of the queue as there is room
-- for together. A waiter that barges loses its place, and the room that it needs stays free
-- until the next step. The commit waits for the disk if one of the grants has to.
CREATE OR REPLACE FUNCTION @schema@.advanced(l @schema@.locks, at bigint) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
DECLARE p @schema@.waits; h @schema@.holds; free bigint;
BEGIN
  LOOP
    SELECT * INTO p FROM waits WHERE name = l.name ORDER BY seq LIMIT 1;
    IF NOT FOUND THEN RETURN l; END IF;
    IF free IS NULL THEN free := room(l); END IF;
    IF p.weight > free THEN RETURN l; END IF;
    DELETE FROM waits WHERE name = l.name AND seq = p.seq;
    free := free - p.weight;
    CONTINUE WHEN p.barge;
    h := entered(l, p.owner, p.attempt, p.meta, p.weight, p.spare, p.ends, at);
    l.token := greatest(l.token, h.token + h.spare);
    PERFORM begin_step(p.durable);
  END LOOP;
END $$;

-- opened returns the row of a lock, locked until the transaction ends, for a grant to
-- another owner. With p_make it is made if there is none.
CREATE OR REPLACE FUNCTION @schema@.opened(p_name bytea, p_make boolean) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
DECLARE l @schema@.locks;
BEGIN
  LOOP
    l := locked(p_name, false);
    EXIT WHEN l.name IS NOT NULL OR NOT p_make;
    INSERT INTO locks (name, token) VALUES (p_name, 0) ON CONFLICT DO NOTHING;
  END LOOP;
  -- A transaction may rely on the lease of a mutex (see hold).
  IF l.owner <> '' AND l.ends <= clock() THEN
    l := locked(p_name, true);
    IF l.owner <> '' AND l.ends <= clock() THEN l.owner := NULL; l.signal := 0; END IF;
  END IF;
  RETURN l;
END $$;

-- clock_of is the server's clock after opened, which has found that the lease of a mutex, if
-- there is one, is not over: no step may end that lease without having locked the row for
-- a grant.
CREATE OR REPLACE FUNCTION @schema@.clock_of(l @schema@.locks) RETURNS bigint LANGUAGE plpgsql
AS $$
BEGIN
  RETURN CASE WHEN l.owner <> '' THEN least(clock(), l.ends - 1) ELSE clock() END;
END $$;

-- pruned drops what has ended: leases, places, and all that the lock had before it became a
-- mutex. The owner of l is empty if the lock is in use as another kind.
CREATE OR REPLACE FUNCTION @schema@.pruned(l @schema@.locks, at bigint) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
DECLARE counts boolean := coalesce(l.owner = '' AND l.ends > at, false);
BEGIN
  IF l.lim IS NOT NULL THEN
    DELETE FROM holds WHERE name = l.name AND (ends <= at OR NOT counts);
    DELETE FROM waits WHERE name = l.name AND (ends <= at OR NOT counts);
  END IF;
  IF NOT counts THEN l.lim := NULL; END IF;
  IF l.ends <= at THEN l.owner := NULL; l.signal := 0; END IF;
  RETURN l;
END $$;

-- handed_on hands the lock on, unless barges is set. A lock without leases and places is
-- not in use any more. A semaphore that was resized to one permit becomes a mutex when its
-- leases are over.
CREATE OR REPLACE FUNCTION @schema@.handed_on(l @schema@.locks, at bigint, barges boolean) RETURNS @schema@.locks LANGUAGE plpgsql
AS $$
BEGIN
  IF l.owner = '' THEN
    IF l.lim > 1 OR l.shared OR EXISTS (SELECT FROM holds WHERE name = l.name) THEN
      IF NOT barges THEN l := advanced(l, at); END IF;
      IF NOT EXISTS (SELECT FROM holds WHERE name = l.name) AND NOT EXISTS (SELECT FROM waits WHERE name = l.name) THEN
        l.owner := NULL; l.lim := NULL; l.ends := at;
      END IF;
      RETURN l;
    END IF;
    INSERT INTO places (name, owner, attempt, meta, spare, barge, durable, ends, signal)
    SELECT name, owner, attempt, meta, spare, barge, durable, ends, 0 FROM waits WHERE name = l.name ORDER BY seq;
    l.line := FOUND; l.served := 0; l.owner := NULL; l.lim := NULL; l.ends := at;
    DELETE FROM waits WHERE name = l.name;
  END IF;
  IF NOT barges THEN l := settled(l, at, ''); END IF;
  RETURN l;
END $$;

-- wrote writes l back. It is a lock of any kind.
CREATE OR REPLACE FUNCTION @schema@.wrote(l @schema@.locks) RETURNS void LANGUAGE plpgsql
AS $$
BEGIN
  IF l.owner = '' THEN
    l.ends := greatest((SELECT max(ends) FROM holds WHERE name = l.name), (SELECT max(ends) FROM waits WHERE name = l.name));
    l.made := ''; l.meta := NULL; l.granted := NULL; l.spare := NULL; l.signal := 0; l.line := false;
  END IF;
  UPDATE locks SET token = l.token, owner = l.owner, made = l.made, meta = l.meta, granted = l.granted, spare = l.spare,
    ends = l.ends, signal = l.signal, line = l.line, buried = l.buried, waited = l.waited, lim = l.lim, shared = l.shared, served = l.served, era = next_era(l.era, clock())
  WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = l.name ORDER BY r.era DESC LIMIT 1);
END $$;

-- blocked fills in who is in the way: the lease that ends first or, without leases, the
-- place that does, of those before the place mine. The description of a waiter says that it waits.
CREATE OR REPLACE FUNCTION @schema@.blocked(l @schema@.locks, leases boolean, mine bigint, a @schema@.kind_answer) RETURNS @schema@.kind_answer LANGUAGE plpgsql
AS $$
BEGIN
  IF leases THEN
    SELECT h.owner, h.meta, h.ends - a.at INTO a.owner, a.meta, a.ends_in FROM holds h WHERE h.name = l.name ORDER BY h.ends, h.seq LIMIT 1;
    IF FOUND THEN RETURN a; END IF;
  END IF;
  SELECT w.owner, '{"waiting":true'::bytea || CASE WHEN length(w.meta) > 2 THEN ','::bytea || substring(w.meta FROM 2) ELSE '}'::bytea END, w.ends - a.at
    INTO a.owner, a.meta, a.ends_in FROM waits w WHERE w.name = l.name AND (mine IS NULL OR w.seq < mine) ORDER BY w.ends, w.seq LIMIT 1;
  RETURN a;
END $$;

-- mismatched fills in the kind that is in use, and by whom.
CREATE OR REPLACE FUNCTION @schema@.mismatched(l @schema@.locks, a @schema@.kind_answer) RETURNS @schema@.kind_answer LANGUAGE plpgsql
AS $$
BEGIN
  a.verdict := 'mismatch';
  IF l.owner = '' THEN
    a.lim := l.lim; a.shared := l.shared;
    RETURN blocked(l, true, NULL, a);
  END IF;
  a.lim := 1; a.shared := false;
  a.owner := l.owner; a.meta := l.meta; a.ends_in := l.ends - a.at;
  IF l.owner IS NULL THEN
    SELECT p.owner, p.meta, p.ends - a.at INTO a.owner, a.meta, a.ends_in FROM places p WHERE p.name = l.name AND p.ends > a.at ORDER BY p.ends, p.seq LIMIT 1;
  END IF;
  RETURN a;
END $$;

-- used reports whether anybody has a lease of the lock or waits for it, after handed_on.
CREATE OR REPLACE FUNCTION @schema@.used(l @schema@.locks, at bigint) RETURNS boolean LANGUAGE plpgsql
AS $$
BEGIN
  RETURN l.owner IS NOT NULL OR l.line AND EXISTS (SELECT FROM places p WHERE p.name = l.name AND p.ends > at);
END $$;

-- ask_kind makes one request, as ask does for a mutex, for p_weight of p_limit.
CREATE OR REPLACE FUNCTION @schema@.ask_kind(p_name bytea, p_owner text, p_attempt text, p_meta bytea, p_ttl bigint, p_spare integer,
  p_wait boolean, p_barge boolean, p_durable boolean, p_limit bigint, p_shared boolean, p_weight bigint) RETURNS @schema@.kind_answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; a kind_answer; h holds; free bigint; mine bigint; barges boolean := p_wait AND p_barge; fits boolean;
BEGIN
  PERFORM begin_step(p_durable);
  a.spare := 0; a.position := 0; a.refreshed := false;
  l := opened(p_name, true);
  a.at := clock_of(l);
  l := handed_on(pruned(l, a.at), a.at, barges);
  IF is_buried(l, attempt_of(p_owner, p_attempt), a.at) THEN
    a.verdict := 'buried';
    PERFORM wrote(l);
    RETURN a;
  ELSIF l.owner IS DISTINCT FROM '' THEN
    IF p_limit = 1 AND NOT p_shared THEN
      a.verdict := 'mutex';
    ELSIF used(l, a.at) THEN
      a := mismatched(l, a);
    END IF;
    IF a.verdict IS NOT NULL THEN
      PERFORM wrote(l);
      RETURN a;
    END IF;
    l.owner := ''; l.lim := p_limit; l.shared := p_shared; free := p_limit;
  ELSIF l.lim <> p_limit OR l.shared <> p_shared THEN
    a := mismatched(l, a);
    PERFORM wrote(l);
    RETURN a;
  ELSE
    SELECT * INTO h FROM holds WHERE name = p_name AND owner = p_owner;
    IF FOUND THEN
      IF h.broken THEN
        a.verdict := 'buried';
      ELSIF p_weight > h.weight THEN
        a.verdict := 'smaller';
      ELSE
        IF p_attempt <> '' AND p_attempt <> h.made THEN h.made := ''; END IF;
        h.ends := greatest(h.ends, a.at + p_ttl);
        UPDATE holds SET made = h.made, ends = h.ends WHERE name = p_name AND slot = h.slot;
        a.verdict := 'again'; a.token := h.token; a.spare := h.spare; a.slot := h.slot; a.ends_in := h.ends - a.at;
      END IF;
      PERFORM wrote(l);
      RETURN a;
    END IF;
    free := room(l);
    SELECT seq INTO mine FROM waits WHERE name = p_name AND owner = p_owner;
  END IF;

  fits := p_weight <= free - CASE WHEN barges THEN 0
    ELSE (SELECT coalesce(sum(w.weight), 0) FROM waits w WHERE w.name = p_name AND (mine IS NULL OR w.seq < mine)) END;
  IF fits THEN
    IF mine IS NOT NULL THEN DELETE FROM waits WHERE name = p_name AND seq = mine; END IF;
    h := entered(l, p_owner, p_attempt, p_meta, p_weight, p_spare, a.at + p_ttl, a.at);
    l.token := greatest(l.token, h.token + h.spare);
    a.verdict := 'granted'; a.token := h.token; a.spare := h.spare; a.slot := h.slot; a.ends_in := p_ttl;
    PERFORM wrote(l);
    RETURN a;
  END IF;

  a.verdict := 'busy';
  a := blocked(l, p_weight > free, mine, a);
  IF p_wait THEN
    a.refreshed := true;
    IF mine IS NOT NULL THEN
      UPDATE waits SET ends = greatest(ends, a.at + p_ttl), attempt = p_attempt, meta = p_meta, weight = p_weight, spare = p_spare,
        barge = p_barge, durable = p_durable WHERE name = p_name AND seq = mine;
    ELSE
      INSERT INTO waits (name, owner, attempt, meta, weight, spare, barge, durable, ends)
      VALUES (p_name, p_owner, p_attempt, p_meta, p_weight, p_spare, p_barge, p_durable, a.at + p_ttl) RETURNING seq INTO mine;
    END IF;
  END IF;
  IF mine IS NOT NULL THEN
    SELECT count(*) INTO a.position FROM waits WHERE name = p_name AND seq <= mine;
  END IF;
  PERFORM wrote(l);
  RETURN a;
END $$;

-- await_kind looks whether a waiter has been handed the lock, and refreshes its place if
-- an eighth of its TTL is over. Most looks need to write nothing.
CREATE OR REPLACE FUNCTION @schema@.await_kind(p_name bytea, p_owner text, p_ttl bigint) RETURNS @schema@.kind_answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; a kind_answer; h holds; p waits; free bigint; quiet boolean := false;
BEGIN
  PERFORM begin_loose_step();
  a.spare := 0; a.position := 0; a.refreshed := false;
  FOR try IN 1..2 LOOP
    IF try = 1 THEN
      SELECT * INTO l FROM locks WHERE name || '' = p_name ORDER BY era DESC LIMIT 1;
      a.at := clock();
    ELSE
      l := opened(p_name, false);
      a.at := clock_of(l);
      IF l.name IS NOT NULL THEN
        l := handed_on(pruned(l, a.at), a.at, false);
        UPDATE waits SET ends = greatest(ends, a.at + p_ttl) WHERE name = p_name AND owner = p_owner;
        a.refreshed := FOUND;
        PERFORM wrote(l);
      END IF;
    END IF;
    IF l.owner = '' AND l.ends > a.at THEN
      SELECT * INTO h FROM holds WHERE name = p_name AND owner = p_owner AND ends > a.at;
      IF FOUND THEN
        a.verdict := 'again'; a.token := h.token; a.spare := h.spare; a.slot := h.slot; a.ends_in := h.ends - a.at;
        RETURN a;
      END IF;
      SELECT * INTO p FROM waits WHERE name = p_name AND owner = p_owner;
      IF FOUND THEN
        free := room(l);
        EXIT WHEN try = 2;
        -- Nothing has ended, and there is no room for the first in the queue.
        quiet := p.ends - a.at > p_ttl - p_ttl / 8
          AND NOT EXISTS (SELECT FROM holds o WHERE o.name = p_name AND o.ends <= a.at) AND NOT EXISTS (SELECT FROM waits o WHERE o.name = p_name AND o.ends <= a.at)
          AND free < (SELECT o.weight FROM waits o WHERE o.name = p_name ORDER BY o.seq LIMIT 1);
        EXIT WHEN quiet;
      END IF;
    END IF;
  END LOOP;
  IF NOT quiet AND NOT a.refreshed THEN a.verdict := 'gone'; RETURN a; END IF;
  a.verdict := 'busy';
  a := blocked(l, p.weight > free, p.seq, a);
  SELECT count(*) INTO a.position FROM waits WHERE name = p_name AND seq <= p.seq;
  RETURN a;
END $$;

-- release_kind is release for a lease of another kind than a mutex.
CREATE OR REPLACE FUNCTION @schema@.release_kind(p_name bytea, p_owner text, p_attempt text, p_undo boolean, p_tomb bigint, p_always boolean,
  OUT done boolean, OUT at bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; h holds;
BEGIN
  PERFORM begin_loose_step();
  l := opened(p_name, p_tomb > 0);
  at := clock_of(l); done := false;
  IF l.name IS NULL THEN RETURN; END IF;
  l := pruned(l, at);
  IF l.owner = '' THEN
    SELECT * INTO h FROM holds WHERE name = p_name AND owner = p_owner;
    done := FOUND AND (p_attempt = '' OR h.made = p_attempt OR h.made = '' AND NOT p_undo);
    IF done THEN
      DELETE FROM holds WHERE name = p_name AND slot = h.slot;
      IF h.broken THEN l := bury(l, attempt_of(h.owner, h.made), h.ends); END IF;
    ELSE
      DELETE FROM waits WHERE name = p_name AND owner = p_owner;
    END IF;
  END IF;
  IF p_tomb > 0 AND (p_always OR NOT done) THEN l := bury(l, attempt_of(p_owner, p_attempt), at + p_tomb); END IF;
  l := handed_on(l, at, false);
  PERFORM wrote(l);
END $$;

-- renew_kind is renew for leases of other kinds than a mutex. No letter of held is w.
CREATE OR REPLACE FUNCTION @schema@.renew_kind(p_names text, p_owners text, p_ttls text, p_durable boolean,
  OUT held text, OUT at bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  names text[] := string_to_array(p_names, ' '); owners text[] := string_to_array(p_owners, ' ');
  ttls text[] := string_to_array(p_ttls, ' '); result text[]; i integer; l locks; until bigint;
BEGIN
  PERFORM begin_step(p_durable);
  -- All sessions lock rows in the same order, so they do not wait for each other.
  FOR i IN SELECT n FROM generate_subscripts(names, 1) n ORDER BY decode(names[n], 'hex') LOOP
    l := locked(decode(names[i], 'hex'), false);
    at := clock();
    result[i] := 'f';
    IF l.owner = '' AND l.ends > at THEN
      UPDATE holds SET ends = greatest(ends, at + ttls[i]::bigint) WHERE name = l.name AND owner = owners[i] AND ends > at AND NOT broken RETURNING ends INTO until;
      IF FOUND THEN
        result[i] := 't';
        UPDATE locks SET ends = greatest(ends, until) WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = l.name ORDER BY r.era DESC LIMIT 1);
      END IF;
    END IF;
  END LOOP;
  at := clock();
  held := array_to_string(result, '');
END $$;

-- reserve_kind is reserve for a lease of another kind than a mutex that shares no token.
CREATE OR REPLACE FUNCTION @schema@.reserve_kind(p_name bytea, p_owner text, p_above bigint, p_count integer, p_durable boolean,
  OUT held boolean, OUT token bigint, OUT count integer, OUT waiting boolean, OUT at bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks;
BEGIN
  PERFORM begin_step(p_durable);
  l := locked(p_name, false);
  at := clock();
  held := coalesce(l.owner = '' AND l.ends > at, false) AND EXISTS (
    SELECT FROM holds h WHERE h.name = p_name AND h.owner = p_owner AND h.ends > reserve_kind.at AND NOT h.broken AND NOT (l.shared AND h.weight < l.lim));
  waiting := held AND EXISTS (SELECT FROM waits w WHERE w.name = p_name AND w.ends > reserve_kind.at);
  IF NOT held THEN RETURN; END IF;
  token := greatest(greatest(l.token, p_above) + 1, at);
  count := least(p_count::bigint, greatest(1, at + 1000001 - token))::integer;
  UPDATE locks SET token = reserve_kind.token + reserve_kind.count - 1 WHERE ctid = (SELECT r.ctid FROM locks r WHERE r.name || '' = p_name ORDER BY r.era DESC LIMIT 1);
END $$;

-- downgrade makes the writer of a read-write lock a reader, and admits the readers that
-- wait. A reader is granted what it has, and nobody anything whose lease was broken.
CREATE OR REPLACE FUNCTION @schema@.downgrade(p_name bytea, p_owner text, p_ttl bigint, p_durable boolean,
  OUT held boolean, OUT token bigint, OUT slot bigint, OUT at bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; h holds;
BEGIN
  PERFORM begin_step(p_durable);
  l := opened(p_name, false);
  at := clock_of(l); held := false;
  IF l.name IS NULL THEN RETURN; END IF;
  l := pruned(l, at);
  IF l.owner = '' AND l.shared THEN
    SELECT * INTO h FROM holds WHERE name = p_name AND owner = p_owner AND NOT broken;
    held := FOUND;
  END IF;
  IF held THEN
    IF h.weight = l.lim THEN
      h.weight := 1; h.spare := 0;
      h.token := next_token(l.token, at);
      l.token := h.token;
    END IF;
    UPDATE holds o SET weight = h.weight, spare = h.spare, token = h.token, ends = greatest(o.ends, downgrade.at + p_ttl) WHERE o.name = p_name AND o.slot = h.slot;
    token := h.token; slot := h.slot;
    l := advanced(l, at);
  END IF;
  PERFORM wrote(handed_on(l, at, true));
END $$;

-- resize changes the number of permits of a semaphore that is in use. Leases stay as they
-- are, and waiters lose their places.
CREATE OR REPLACE FUNCTION @schema@.resize(p_name bytea, p_from bigint, p_to bigint) RETURNS @schema@.kind_answer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = @schema@, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE l locks; a kind_answer; lim bigint := 1; shared boolean := false; is_broken boolean;
BEGIN
  PERFORM begin_step(true);
  a.verdict := 'done'; a.spare := 0; a.position := 0; a.refreshed := false;
  l := locked(p_name, true);
  a.at := clock();
  IF l.name IS NULL THEN RETURN a; END IF;
  l := handed_on(pruned(l, a.at), a.at, true);
  IF l.owner = '' THEN lim := l.lim; shared := l.shared; END IF;
  IF NOT used(l, a.at) OR lim = p_to AND NOT shared THEN
    NULL;
  ELSIF lim <> p_from OR shared THEN
    a := mismatched(l, a);
  ELSIF l.owner = '' THEN
    DELETE FROM waits WHERE name = p_name;
    l.lim := p_to;
  ELSE -- a mutex is a semaphore of one
    DELETE FROM places WHERE name = p_name;
    l.line := false; l.waited := a.at;
    IF l.owner IS NOT NULL THEN
      is_broken := is_buried(l, attempt_of(l.owner, l.made), a.at);
      INSERT INTO holds (name, slot, owner, made, meta, weight, token, spare, began, ends, broken)
      VALUES (p_name, 0, l.owner, l.made, l.meta, 1, l.granted, l.spare, l.granted, l.ends, is_broken);
      l.owner := ''; l.lim := p_to; l.shared := false;
    END IF;
  END IF;
  PERFORM wrote(handed_on(l, a.at, true));
  RETURN a;
END $$;

-- break_kind is break_lease for a lease of another kind than a mutex. The row of the lock
-- is locked.
CREATE OR REPLACE FUNCTION @schema@.break_kind(l @schema@.locks, p_owner text, p_token bigint, p_now boolean, p_note bytea, p_keep bigint, at bigint,
  OUT broke boolean, OUT left_in bigint) LANGUAGE plpgsql
AS $$
DECLARE h @schema@.holds;
BEGIN
  l := pruned(l, at);
  left_in := 0;
  SELECT * INTO h FROM holds WHERE name = l.name AND owner = p_owner AND token = p_token;
  broke := FOUND;
  IF broke THEN
    IF NOT h.broken THEN
      INSERT INTO breaks (name, owner, token, note, ends) VALUES (l.name, p_owner, p_token, p_note, h.ends + p_keep)
      ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, token = excluded.token, note = excluded.note, ends = excluded.ends;
    END IF;
    IF p_now THEN
      DELETE FROM holds WHERE name = l.name AND slot = h.slot;
      l := bury(l, attempt_of(h.owner, h.made), h.ends);
    ELSE
      UPDATE holds SET broken = true WHERE name = l.name AND slot = h.slot;
      left_in := h.ends - at;
    END IF;
  ELSE
    broke := EXISTS (SELECT FROM breaks b WHERE b.name = l.name AND b.owner = p_owner AND b.token = p_token AND b.ends > at);
  END IF;
  PERFORM wrote(handed_on(l, at, false));
END $$;
