-- The operations of a lock with waiters, and nothing else. One call is one
-- transaction. Every grant takes a session lock, which the next waiter waits for.

DROP SCHEMA IF EXISTS floor CASCADE;
CREATE SCHEMA floor;

CREATE TABLE floor.locks (name text PRIMARY KEY, owner text, signal bigint, token bigint NOT NULL, ends timestamptz) WITH (fillfactor = 50);
CREATE TABLE floor.places (name text, seq bigint GENERATED ALWAYS AS IDENTITY, owner text NOT NULL, signal bigint NOT NULL, ends timestamptz NOT NULL,
  PRIMARY KEY (name, seq)) WITH (fillfactor = 50);

-- ask grants the lock, or makes a place and returns the signal of the one before it.
CREATE FUNCTION floor.ask(p_name text, p_owner text, p_signal bigint, p_ttl interval, OUT token bigint, OUT before bigint) LANGUAGE plpgsql AS $$
DECLARE l floor.locks; at timestamptz;
BEGIN
  SELECT * INTO l FROM floor.locks WHERE name = p_name FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO floor.locks (name, token) VALUES (p_name, 0) ON CONFLICT DO NOTHING;
    SELECT * INTO l FROM floor.locks WHERE name = p_name FOR UPDATE;
  END IF;
  at := clock_timestamp();
  PERFORM pg_advisory_lock(p_signal);
  IF l.owner IS NULL OR l.ends <= at THEN
    token := greatest(l.token + 1, (extract(epoch FROM at) * 1000000)::bigint);
    UPDATE floor.locks SET owner = p_owner, signal = p_signal, token = ask.token, ends = at + p_ttl WHERE name = p_name;
    RETURN;
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT p.signal INTO before FROM floor.places p WHERE p.name = p_name ORDER BY seq DESC LIMIT 1;
  IF NOT FOUND THEN before := l.signal; END IF;
  INSERT INTO floor.places (name, owner, signal, ends) VALUES (p_name, p_owner, p_signal, at + p_ttl);
END $$;

-- await waits for a signal and returns the token, if the lock was handed over.
CREATE FUNCTION floor.await(p_name text, p_owner text, p_before bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_lock_shared(p_before);
  PERFORM pg_advisory_unlock_shared(p_before);
  RETURN (SELECT token FROM floor.locks WHERE name = p_name AND owner = p_owner AND ends > clock_timestamp());
END $$;

-- release hands the lock to the first waiter. Unless it does, it need not be on disk.
-- The session gives its signal when the transaction has been committed.
CREATE FUNCTION floor.release(p_name text, p_owner text, p_signal bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE l floor.locks; p floor.places; at timestamptz;
BEGIN
  IF p_signal <> 0 THEN PERFORM pg_advisory_xact_lock(p_signal), pg_advisory_unlock(p_signal); END IF;
  SELECT * INTO l FROM floor.locks WHERE name = p_name AND owner = p_owner FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  at := clock_timestamp();
  DELETE FROM floor.places WHERE name = p_name AND seq = (SELECT min(seq) FROM floor.places WHERE name = p_name AND ends > at) RETURNING * INTO p;
  IF FOUND THEN
    UPDATE floor.locks SET owner = p.owner, signal = p.signal, token = greatest(l.token + 1, (extract(epoch FROM at) * 1000000)::bigint), ends = p.ends WHERE name = p_name;
  ELSE
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE floor.locks SET owner = NULL, ends = at WHERE name = p_name;
  END IF;
  RETURN true;
END $$;

-- leave gives up a place, or the lock if it was handed over meanwhile.
CREATE FUNCTION floor.leave(p_name text, p_owner text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM floor.locks WHERE name = p_name FOR UPDATE;
  DELETE FROM floor.places WHERE name = p_name AND owner = p_owner;
  RETURN floor.release(p_name, p_owner, 0);
END $$;
