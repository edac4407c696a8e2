-- A row is one lock. Times are in microseconds since 1970, by the server's clock.
CREATE TABLE IF NOT EXISTS @schema@.locks (
  name VARBINARY(1024) NOT NULL PRIMARY KEY,
  token BIGINT NOT NULL,                 -- the largest that was granted or reserved
  owner VARBINARY(256),                  -- of the lease; null: the lock is free
  made VARBINARY(256) NOT NULL DEFAULT '', -- the attempt that made the lease, unless another one of the owner has joined
  meta VARBINARY(4096),
  granted BIGINT,                        -- the token of the lease
  spare INT,                             -- tokens that were reserved with it
  ends BIGINT NOT NULL DEFAULT 0,        -- when the lease ends, or has ended
  `signal` BIGINT NOT NULL DEFAULT 0,    -- the session lock that the next waiter waits for; 0: none
  line BOOLEAN NOT NULL DEFAULT FALSE,   -- the lock may have waiters
  buried BIGINT NOT NULL DEFAULT 0,      -- when the last of its tombstones ends
  -- The kind of a lock that is in use as another kind than a mutex. Its owner is empty
  -- then, and it ends when the last of its leases and places does. lim is null if the lock
  -- has no rows in holds and waits.
  lim BIGINT,                            -- what the weights of the leases add up to at most
  shared BOOLEAN                         -- leases of less weight than that share a token
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A row repeats the owner of a lock. A transaction that relies on a lease (see hold)
-- locks this row and not the one in locks, so that the lease can be renewed. A step
-- that may change the owner locks this row first, and then the one in locks.
CREATE TABLE IF NOT EXISTS @schema@.owners (
  name VARBINARY(1024) NOT NULL PRIMARY KEY,
  owner VARBINARY(256)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A row is the place of one waiter. The order is that of arrival.
CREATE TABLE IF NOT EXISTS @schema@.places (
  name VARBINARY(1024) NOT NULL,
  seq BIGINT NOT NULL AUTO_INCREMENT,
  owner VARBINARY(256) NOT NULL,
  attempt VARBINARY(256) NOT NULL,
  meta VARBINARY(4096) NOT NULL,
  spare INT NOT NULL,
  barge BOOLEAN NOT NULL,
  ends BIGINT NOT NULL,
  `signal` BIGINT NOT NULL,
  PRIMARY KEY (name, seq),
  KEY seq (seq),
  KEY owner (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A tombstone refuses an owner, or after a space one of its attempts, whose request
-- may yet arrive.
CREATE TABLE IF NOT EXISTS @schema@.tombs (
  name VARBINARY(1024) NOT NULL,
  owner VARBINARY(513) NOT NULL,
  ends BIGINT NOT NULL,
  PRIMARY KEY (name, owner),
  KEY ends (ends)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A row says who broke a lease of a lock last.
CREATE TABLE IF NOT EXISTS @schema@.breaks (
  name VARBINARY(1024) NOT NULL PRIMARY KEY,
  owner VARBINARY(256) NOT NULL,         -- of the lease
  token BIGINT NOT NULL,                 -- of the lease
  note VARBINARY(16384) NOT NULL,
  ends BIGINT NOT NULL,                  -- when the row has no meaning any more
  KEY ends (ends)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A row is one lease of a lock that is no mutex.
CREATE TABLE IF NOT EXISTS @schema@.holds (
  name VARBINARY(1024) NOT NULL,
  slot BIGINT NOT NULL,                  -- the smallest number that no other lease had
  seq BIGINT NOT NULL AUTO_INCREMENT,
  owner VARBINARY(256) NOT NULL,
  made VARBINARY(256) NOT NULL,          -- as in locks
  meta VARBINARY(4096) NOT NULL,
  weight BIGINT NOT NULL,
  token BIGINT NOT NULL,
  spare INT NOT NULL,
  began BIGINT NOT NULL,
  ends BIGINT NOT NULL,
  broken BOOLEAN NOT NULL,               -- the lease cannot be renewed any more
  PRIMARY KEY (name, slot),
  KEY seq (seq),
  KEY owner (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A row is the place of one waiter for such a lock. The order is that of arrival.
CREATE TABLE IF NOT EXISTS @schema@.waits (
  name VARBINARY(1024) NOT NULL,
  seq BIGINT NOT NULL AUTO_INCREMENT,
  owner VARBINARY(256) NOT NULL,
  attempt VARBINARY(256) NOT NULL,
  meta VARBINARY(4096) NOT NULL,
  weight BIGINT NOT NULL,
  spare INT NOT NULL,
  barge BOOLEAN NOT NULL,
  ends BIGINT NOT NULL,
  PRIMARY KEY (name, seq),
  KEY seq (seq),
  KEY owner (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

DELIMITER $$
