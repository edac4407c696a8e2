-- The steps that procedures have in common. They have the rights of their caller, so
-- that only the procedures below can use them.

-- begin_step begins a transaction in which each statement sees what others have
-- committed meanwhile. A definer with many rights could write to a server that is
-- read-only for others.
CREATE PROCEDURE @schema@.begin_step() SQL SECURITY INVOKER
BEGIN
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  IF CONCAT(@@GLOBAL.read_only) NOT IN ('0', 'OFF') THEN
    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server is read-only';
  END IF;
END $$

-- locked locks the row of a lock and reads it and, after that, the clock. strong also
-- locks the row in owners: it waits for transactions that rely on the lease (see
-- hold), which renewals and places do not. strong is set if the lock has no lease, or
-- one that is over or p_owner's: such a lease may be about to change. With p_make the
-- rows are made if there are none. l_token is null if there are none.
CREATE PROCEDURE @schema@.locked(IN p_name VARBINARY(1024), IN p_owner VARBINARY(256), IN p_make BOOLEAN, INOUT strong BOOLEAN, OUT at BIGINT,
  OUT l_token BIGINT, OUT l_owner VARBINARY(256), OUT l_made VARBINARY(256), OUT l_meta VARBINARY(4096), OUT l_granted BIGINT, OUT l_spare INT,
  OUT l_ends BIGINT, OUT l_signal BIGINT, OUT l_line BOOLEAN, OUT l_buried BIGINT) SQL SECURITY INVOKER
BEGIN
  DECLARE rows_there INT DEFAULT 1;
  tries: LOOP
    IF strong THEN
      SELECT COUNT(*) INTO rows_there FROM owners WHERE name = p_name FOR UPDATE;
    END IF;
    SET l_token = NULL;
    SELECT token, owner, made, meta, granted, spare, ends, `signal`, line, buried
      INTO l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried
      FROM locks WHERE name = p_name FOR UPDATE;
    SET at = @clock@;
    IF strong AND (l_token IS NULL AND p_make OR l_token IS NOT NULL AND rows_there = 0) THEN
      -- INSERT IGNORE would leave a shared lock, and two of them a deadlock.
      INSERT INTO owners (name) VALUES (p_name) ON DUPLICATE KEY UPDATE name = p_name;
      INSERT INTO locks (name, token) VALUES (p_name, 0) ON DUPLICATE KEY UPDATE name = p_name;
      ITERATE tries;
    END IF;
    IF strong OR l_token IS NOT NULL AND l_owner IS NOT NULL AND l_ends > at AND NOT l_owner <=> p_owner THEN LEAVE tries; END IF;
    -- The row in owners comes first.
    ROLLBACK;
    CALL begin_step();
    SET strong = TRUE;
  END LOOP;
END $$

-- drawn draws the next token, and as many of the spare tokens after it as leave the
-- tokens at most a second ahead of the clock.
CREATE PROCEDURE @schema@.drawn(IN p_spare INT, IN at BIGINT, INOUT l_token BIGINT, OUT l_granted BIGINT, OUT l_spare INT) SQL SECURITY INVOKER
BEGIN
  SET l_granted = GREATEST(l_token + 1, at);
  SET l_spare = LEAST(p_spare, GREATEST(0, at + 1000000 - l_granted));
  SET l_token = l_granted + l_spare;
END $$

-- settled drops a lease that has ended, and hands a free lock to the first living
-- waiter. It passes over a waiter whose session is gone, unless that is the caller. A
-- waiter that barges loses its place and may come for the lock: the lock stays free
-- until the next step. Both rows are locked.
CREATE PROCEDURE @schema@.settled(IN p_name VARBINARY(1024), IN at BIGINT, IN caller VARBINARY(256),
  INOUT l_token BIGINT, INOUT l_owner VARBINARY(256), INOUT l_made VARBINARY(256), INOUT l_meta VARBINARY(4096), INOUT l_granted BIGINT, INOUT l_spare INT,
  INOUT l_ends BIGINT, INOUT l_signal BIGINT, INOUT l_line BOOLEAN) SQL SECURITY INVOKER
settled: BEGIN
  DECLARE q_seq, q_ends, q_signal BIGINT; DECLARE q_spare INT; DECLARE q_barge BOOLEAN;
  DECLARE q_owner, q_attempt VARBINARY(256); DECLARE q_meta VARBINARY(4096);
  IF l_owner IS NOT NULL AND l_ends > at THEN LEAVE settled; END IF;
  SET l_owner = NULL, l_signal = 0;
  IF NOT l_line THEN LEAVE settled; END IF;
  waiters: LOOP
    SET q_seq = NULL;
    SELECT seq, owner, attempt, meta, spare, barge, ends, `signal` INTO q_seq, q_owner, q_attempt, q_meta, q_spare, q_barge, q_ends, q_signal
      FROM places WHERE name = p_name ORDER BY seq LIMIT 1;
    IF q_seq IS NULL THEN SET l_line = FALSE; LEAVE settled; END IF;
    DELETE FROM places WHERE name = p_name AND seq = q_seq;
    IF q_ends <= at THEN ITERATE waiters; END IF;
    IF q_signal <> 0 AND q_owner <> caller AND IS_FREE_LOCK(CONCAT('leasehold ', q_signal)) THEN ITERATE waiters; END IF;
    IF q_barge THEN LEAVE settled; END IF;
    CALL drawn(q_spare, at, l_token, l_granted, l_spare);
    SET l_owner = q_owner, l_made = q_attempt, l_meta = q_meta, l_ends = q_ends, l_signal = q_signal;
    LEAVE settled;
  END LOOP;
END $$

-- kept writes the row back. Both rows are locked.
CREATE PROCEDURE @schema@.kept(IN p_name VARBINARY(1024),
  IN l_token BIGINT, IN l_owner VARBINARY(256), IN l_made VARBINARY(256), IN l_meta VARBINARY(4096), IN l_granted BIGINT, IN l_spare INT,
  IN l_ends BIGINT, IN l_signal BIGINT, IN l_line BOOLEAN, IN l_buried BIGINT) SQL SECURITY INVOKER
BEGIN
  UPDATE locks SET token = l_token, owner = l_owner, made = l_made, meta = l_meta, granted = l_granted, spare = l_spare,
    ends = l_ends, `signal` = l_signal, line = l_line, buried = l_buried WHERE name = p_name;
  UPDATE owners SET owner = l_owner WHERE name = p_name;
END $$

-- refused tells who is in the way of the owner, its position, and in a_ahead the signal
-- that its place waits for: that of the last living place before it that has one, or else
-- that of the lease; 0: none. A waiter between the two has no signal and looks now and then.
-- If the others behind it did so, too, they would come late. It reads: the caller may have
-- locked the rows or not.
CREATE PROCEDURE @schema@.refused(IN p_name VARBINARY(1024), IN p_owner VARBINARY(256), IN at BIGINT,
  IN l_owner VARBINARY(256), IN l_meta VARBINARY(4096), IN l_ends BIGINT, IN l_signal BIGINT, IN l_line BOOLEAN,
  OUT a_owner VARBINARY(256), OUT a_meta VARBINARY(4096), OUT a_ends_in BIGINT, OUT a_position INT, OUT a_ahead BIGINT) SQL SECURITY INVOKER
BEGIN
  DECLARE mine BIGINT;
  SET a_owner = l_owner, a_meta = l_meta, a_ends_in = l_ends - at, a_position = 0, a_ahead = 0;
  IF l_line THEN
    SELECT MAX(seq) INTO mine FROM places WHERE name = p_name AND owner = p_owner AND ends > at;
    IF mine IS NOT NULL THEN
      SELECT COUNT(*) INTO a_position FROM places WHERE name = p_name AND seq <= mine AND ends > at;
      IF a_position > 1 THEN
        SELECT `signal` INTO a_ahead FROM places WHERE name = p_name AND seq < mine AND ends > at AND `signal` <> 0 ORDER BY seq DESC LIMIT 1;
      END IF;
      IF a_ahead = 0 AND l_owner IS NOT NULL THEN SET a_ahead = l_signal; END IF;
    END IF;
    IF l_owner IS NULL THEN -- the lock is free for a waiter that barges
      SELECT owner, meta, ends - at INTO a_owner, a_meta, a_ends_in FROM places WHERE name = p_name AND owner <> p_owner AND ends > at ORDER BY seq LIMIT 1;
    END IF;
  END IF;
END $$

-- look_for_tomb reports whether a tombstone refuses the attempt.
CREATE PROCEDURE @schema@.look_for_tomb(IN p_name VARBINARY(1024), IN p_owner VARBINARY(256), IN p_attempt VARBINARY(256), IN at BIGINT, OUT is_buried BOOLEAN) SQL SECURITY INVOKER
BEGIN
  SET is_buried = EXISTS (SELECT 1 FROM tombs t WHERE t.name = p_name
    AND t.owner = IF(p_attempt = '', p_owner, CONCAT(p_owner, ' ', p_attempt)) AND t.ends > at);
END $$

-- bury leaves a tombstone.
CREATE PROCEDURE @schema@.bury(IN p_name VARBINARY(1024), IN p_owner VARBINARY(256), IN p_attempt VARBINARY(256), IN p_ends BIGINT, INOUT l_buried BIGINT) SQL SECURITY INVOKER
BEGIN
  INSERT INTO tombs (name, owner, ends) VALUES (p_name, IF(p_attempt = '', p_owner, CONCAT(p_owner, ' ', p_attempt)), p_ends)
    ON DUPLICATE KEY UPDATE ends = GREATEST(ends, p_ends);
  SET l_buried = GREATEST(l_buried, p_ends);
END $$

-- released ends the owner's lease, or its place, and hands the lock on to l_owner until
-- l_ends. It leaves alone a lease that another attempt of the owner made, or, with
-- p_undo, one that another attempt has joined. If p_tomb is positive, the attempt is then
-- refused for that long, if it had no lease or if p_always is set: a request of its own
-- may yet arrive.
CREATE PROCEDURE @schema@.released(IN p_name VARBINARY(1024), IN p_owner VARBINARY(256), IN p_attempt VARBINARY(256), IN p_undo BOOLEAN, IN p_tomb BIGINT, IN p_always BOOLEAN,
  OUT done BOOLEAN, OUT at BIGINT, OUT l_owner VARBINARY(256), OUT l_ends BIGINT) SQL SECURITY INVOKER
BEGIN
  DECLARE strong, l_line BOOLEAN DEFAULT FALSE;
  DECLARE l_token, l_granted, l_signal, l_buried BIGINT; DECLARE l_spare INT;
  DECLARE l_made VARBINARY(256); DECLARE l_meta VARBINARY(4096);
  SET done = FALSE;
  SELECT owner, ends INTO l_owner, l_ends FROM locks WHERE name = p_name;
  SET at = @clock@;
  SET strong = l_owner IS NULL OR l_owner = p_owner OR l_ends <= at;
  CALL locked(p_name, p_owner, p_tomb > 0, strong, at, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
  IF l_token IS NOT NULL THEN
    SET done = COALESCE(l_owner = p_owner AND l_ends > at, FALSE)
      AND (p_attempt = '' OR l_made = p_attempt OR l_made = '' AND NOT p_undo);
    IF done THEN SET l_ends = at; END IF;
    IF l_line THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;
    IF p_tomb > 0 AND (p_always OR NOT done) THEN
      CALL bury(p_name, p_owner, p_attempt, at + p_tomb, l_buried);
      UPDATE locks SET buried = l_buried WHERE name = p_name;
    END IF;
    IF strong THEN
      CALL settled(p_name, at, p_owner, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line);
      CALL kept(p_name, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
    END IF;
  END IF;
END $$
