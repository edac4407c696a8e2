-- The tables of the locks, and a row that says which version they have.

CREATE TABLE IF NOT EXISTS @schema@.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  -- version is that of the tables and procedures. Programs that know oldest or a
  -- later version can use them.
  version integer NOT NULL,
  oldest integer NOT NULL,
  longest bigint NOT NULL DEFAULT 0   -- the longest TTL above a minute that was asked for, in microseconds
);

-- A row is one lock. Times are in microseconds since 1970, by the server's clock.
CREATE TABLE IF NOT EXISTS @schema@.locks (
  name bytea PRIMARY KEY,
  token bigint NOT NULL,              -- the largest that was granted or reserved
  owner text,                         -- of the lease; null: the lock is free
  made text NOT NULL DEFAULT '',      -- the attempt that made the lease, unless another one of the owner has joined
  meta bytea,
  granted bigint,                     -- the token of the lease
  spare integer,                      -- tokens that were reserved with it
  ends bigint NOT NULL DEFAULT 0,     -- when the lease ends, or has ended
  signal bigint NOT NULL DEFAULT 0,   -- the session lock that the next waiter waits for; 0: none
  line boolean NOT NULL DEFAULT false, -- the lock may have waiters
  buried bigint NOT NULL DEFAULT 0,   -- when the last of its tombstones ends
  waited bigint NOT NULL DEFAULT 0,   -- when it last became known that nobody waits any more
  served bigint NOT NULL DEFAULT 0,   -- the place that was handed the lock last; those before it are gone
  era bigint NOT NULL DEFAULT 0,      -- when the row got an entry of its own in locks_newest
  -- The kind of a lock that is in use as another kind than a mutex. Its owner is empty
  -- then, and it ends when the last of its leases and places does. lim is null if the lock
  -- has no rows in holds and waits.
  lim bigint,                         -- what the weights of the leases add up to at most
  shared boolean                      -- leases of less weight than that share a token
) WITH (vacuum_truncate = off, fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- Each step changes the row of its lock, and the old versions of the row remain for as long as
-- any transaction may see them: that of a report, of a backup, of a waiter that blocks. In the
-- primary key all of them are found before the present one: with 16,000 of them, lock and unlock
-- take 640 us of the server's time instead of 200. In this index the procedures find the
-- present row among the few dozen of the newest era, which takes 8 us. The expression keeps
-- plans away from the primary key. One grant in 32 begins an era (next_era), since a row with an
-- entry of its own costs more than one that shares an entry.
--
-- CREATE INDEX IF NOT EXISTS would lock the table also if there is the index. That holds up all
-- steps, and is a deadlock with a step that has read the table and is about to write to it.
DO $$ BEGIN
  IF to_regclass('@schema@.locks_newest') IS NULL THEN
    CREATE INDEX locks_newest ON @schema@.locks ((name || ''), era);
    ALTER INDEX @schema@.locks_newest ALTER COLUMN 1 SET STATISTICS 0;
    -- With statistics about the names of few locks, each call would collect the rows of its lock
    -- in a bitmap instead of following the index, which takes 10 % more of the server's time.
    ALTER TABLE @schema@.locks ALTER COLUMN name SET STATISTICS 0;
  END IF;
END $$;

-- A row is the place of one waiter. The order is that of arrival.
CREATE TABLE IF NOT EXISTS @schema@.places (
  name bytea NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  owner text NOT NULL,
  attempt text NOT NULL,
  meta bytea NOT NULL,
  spare integer NOT NULL,
  barge boolean NOT NULL,
  durable boolean NOT NULL,           -- the grant has to be on disk before it counts
  ends bigint NOT NULL,
  signal bigint NOT NULL,
  PRIMARY KEY (name, seq)
) WITH (vacuum_truncate = off, fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

DO $$ BEGIN
  IF to_regclass('@schema@.places_owner') IS NULL THEN CREATE INDEX places_owner ON @schema@.places (name, owner); END IF;
END $$;

-- A table of few pages is read as a whole, and a session would go on doing so when there
-- are many locks or places, living or dead. So these tables have empty pages from the
-- start, and keep them.
DO $$ BEGIN
  IF pg_relation_size('@schema@.locks') < 32 * 8192 THEN
    INSERT INTO @schema@.locks (name, token, made) SELECT convert_to('page ' || gen_random_uuid(), 'UTF8'), 0, repeat('-', 1800) FROM generate_series(1, 64);
    DELETE FROM @schema@.locks WHERE made = repeat('-', 1800);
  END IF;
  IF pg_relation_size('@schema@.places') < 32 * 8192 THEN
    INSERT INTO @schema@.places (name, owner, attempt, meta, spare, barge, durable, ends, signal)
      SELECT convert_to('page ' || gen_random_uuid(), 'UTF8'), repeat('-', 1800), '', '', 0, false, false, 0, 0 FROM generate_series(1, 64);
    DELETE FROM @schema@.places WHERE owner = repeat('-', 1800);
  END IF;
END $$;

-- A tombstone refuses an owner, or after a space one of its attempts, whose request
-- may yet arrive.
CREATE TABLE IF NOT EXISTS @schema@.tombs (
  name bytea NOT NULL,
  owner text NOT NULL,
  ends bigint NOT NULL,
  PRIMARY KEY (name, owner)
);

DO $$ BEGIN
  IF to_regclass('@schema@.tombs_ends') IS NULL THEN CREATE INDEX tombs_ends ON @schema@.tombs (ends); END IF;
END $$;

-- A row says who broke a lease of a lock last. A lease that is broken has a tombstone
-- while it is held.
CREATE TABLE IF NOT EXISTS @schema@.breaks (
  name bytea PRIMARY KEY,
  owner text NOT NULL,                -- of the lease
  token bigint NOT NULL,              -- of the lease
  note bytea NOT NULL,
  ends bigint NOT NULL                -- when the row has no meaning any more
);

-- A row is one lease of a lock that is no mutex.
CREATE TABLE IF NOT EXISTS @schema@.holds (
  name bytea NOT NULL,
  slot bigint NOT NULL,               -- the smallest number that no other lease had
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  owner text NOT NULL,
  made text NOT NULL,                 -- as in locks
  meta bytea NOT NULL,
  weight bigint NOT NULL,
  token bigint NOT NULL,
  spare integer NOT NULL,
  began bigint NOT NULL,
  ends bigint NOT NULL,
  broken boolean NOT NULL DEFAULT false, -- the lease cannot be renewed any more
  PRIMARY KEY (name, slot)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

DO $$ BEGIN
  IF to_regclass('@schema@.holds_owner') IS NULL THEN CREATE UNIQUE INDEX holds_owner ON @schema@.holds (name, owner); END IF;
END $$;

-- A row is the place of one waiter for such a lock. The order is that of arrival.
CREATE TABLE IF NOT EXISTS @schema@.waits (
  name bytea NOT NULL,
  seq bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  owner text NOT NULL,
  attempt text NOT NULL,
  meta bytea NOT NULL,
  weight bigint NOT NULL,
  spare integer NOT NULL,
  barge boolean NOT NULL,
  durable boolean NOT NULL,           -- the grant has to be on disk before it counts
  ends bigint NOT NULL,
  PRIMARY KEY (name, seq)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

DO $$ BEGIN
  IF to_regclass('@schema@.waits_owner') IS NULL THEN CREATE UNIQUE INDEX waits_owner ON @schema@.waits (name, owner); END IF;
END $$;
