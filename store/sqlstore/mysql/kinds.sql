-- The procedures for the locks of other kinds than a mutex: semaphores and read-write
-- locks. While one is in use, its row in locks has the empty owner, which no lease has,
-- and ends when the last of its leases and places does. So its name is not a free mutex,
-- and when the procedures of a mutex find its lease over, nothing is left of it. Each step
-- locks that row first, so that the rows in holds and waits need no locks of their own.
-- The row in owners has no owner meanwhile, and is locked only if the lock may be or become
-- a mutex. Waiters poll: no session is the one to wait for.

-- room is the part of the limit that the leases leave.
CREATE PROCEDURE @schema@.room(IN p_name VARBINARY(1024), IN l_lim BIGINT, OUT unused BIGINT) SQL SECURITY INVOKER
BEGIN
  SELECT l_lim - COALESCE(SUM(weight), 0) INTO unused FROM holds WHERE name = p_name;
END $$

-- entered adds a lease. The first reader draws a token, and readers beside it share it.
CREATE PROCEDURE @schema@.entered(IN p_name VARBINARY(1024), IN l_lim BIGINT, IN l_shared BOOLEAN, IN p_owner VARBINARY(256), IN p_attempt VARBINARY(256), IN p_meta VARBINARY(4096),
  IN p_weight BIGINT, IN p_spare INT, IN p_ends BIGINT, IN at BIGINT, INOUT l_token BIGINT, OUT h_token BIGINT, OUT h_spare INT, OUT h_slot BIGINT) SQL SECURITY INVOKER
BEGIN
  DECLARE reading BOOLEAN DEFAULT l_shared AND p_weight < l_lim;
  IF reading THEN SET p_spare = 0; END IF;
  IF reading AND EXISTS (SELECT 1 FROM holds WHERE name = p_name) THEN
    SET h_token = l_token, h_spare = 0;
  ELSE
    CALL drawn(p_spare, at, l_token, h_token, h_spare);
  END IF;
  SELECT MIN(c.slot) INTO h_slot FROM (SELECT 0 AS slot UNION ALL SELECT o.slot + 1 FROM holds o WHERE o.name = p_name) c
    WHERE NOT EXISTS (SELECT 1 FROM holds o WHERE o.name = p_name AND o.slot = c.slot);
  INSERT INTO holds (name, slot, owner, made, meta, weight, token, spare, began, ends, broken)
  VALUES (p_name, h_slot, p_owner, p_attempt, p_meta, p_weight, h_token, h_spare, at, p_ends, FALSE);
END $$

-- advanced hands the lock to waiters: as many from the head of the queue as there is room
-- for together. A waiter that barges loses its place, and the room that it needs stays free
-- until the next step.
CREATE PROCEDURE @schema@.advanced(IN p_name VARBINARY(1024), IN l_lim BIGINT, IN l_shared BOOLEAN, IN at BIGINT, INOUT l_token BIGINT) SQL SECURITY INVOKER
advanced: BEGIN
  DECLARE unused, q_seq, q_weight, q_ends, h_token, h_slot BIGINT; DECLARE q_spare, h_spare INT; DECLARE q_barge BOOLEAN;
  DECLARE q_owner, q_attempt VARBINARY(256); DECLARE q_meta VARBINARY(4096);
  waiters: LOOP
    SET q_seq = NULL;
    SELECT seq, owner, attempt, meta, weight, spare, barge, ends INTO q_seq, q_owner, q_attempt, q_meta, q_weight, q_spare, q_barge, q_ends
      FROM waits WHERE name = p_name ORDER BY seq LIMIT 1;
    IF q_seq IS NULL THEN LEAVE advanced; END IF;
    IF unused IS NULL THEN CALL room(p_name, l_lim, unused); END IF;
    IF q_weight > unused THEN LEAVE advanced; END IF;
    DELETE FROM waits WHERE name = p_name AND seq = q_seq;
    SET unused = unused - q_weight;
    IF NOT q_barge THEN
      CALL entered(p_name, l_lim, l_shared, q_owner, q_attempt, q_meta, q_weight, q_spare, q_ends, at, l_token, h_token, h_spare, h_slot);
    END IF;
  END LOOP;
END $$

-- opened locks the row of a lock and drops what has ended: leases, places, and all that
-- the lock had before it became a mutex. l_owner is empty if the lock is in use as another
-- kind. With p_make the rows are made if there are none. l_token is null if there are none.
CREATE PROCEDURE @schema@.opened(IN p_name VARBINARY(1024), IN p_make BOOLEAN, INOUT strong BOOLEAN, OUT at BIGINT,
  OUT l_token BIGINT, OUT l_owner VARBINARY(256), OUT l_lim BIGINT, OUT l_shared BOOLEAN, OUT l_buried BIGINT) SQL SECURITY INVOKER
BEGIN
  DECLARE l_made VARBINARY(256); DECLARE l_meta VARBINARY(4096); DECLARE l_granted, l_ends, l_signal BIGINT; DECLARE l_spare INT; DECLARE l_line, in_use BOOLEAN;
  tries: LOOP
    CALL locked(p_name, NULL, p_make, strong, at, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
    SELECT lim, shared INTO l_lim, l_shared FROM locks WHERE name = p_name;
    IF strong OR NOT l_owner <=> '' OR l_lim > 1 OR l_shared THEN LEAVE tries; END IF;
    -- It may become a mutex, and the row in owners comes first.
    ROLLBACK;
    CALL begin_step();
    SET strong = TRUE;
  END LOOP;
  SET in_use = COALESCE(l_owner = '' AND l_ends > at, FALSE);
  IF l_lim IS NOT NULL THEN
    DELETE FROM holds WHERE name = p_name AND (ends <= at OR NOT in_use);
    DELETE FROM waits WHERE name = p_name AND (ends <= at OR NOT in_use);
  END IF;
  IF NOT in_use THEN SET l_lim = NULL; END IF;
  IF l_ends <= at THEN SET l_owner = NULL; END IF;
END $$

-- handed_on hands the lock on, unless barges is set. A lock without leases and places is
-- not in use any more. A semaphore that was resized to one permit becomes a mutex when its
-- leases are over.
CREATE PROCEDURE @schema@.handed_on(IN p_name VARBINARY(1024), IN at BIGINT, IN barges BOOLEAN, INOUT l_token BIGINT, INOUT l_owner VARBINARY(256), INOUT l_lim BIGINT, IN l_shared BOOLEAN) SQL SECURITY INVOKER
handed_on: BEGIN
  DECLARE l_made VARBINARY(256); DECLARE l_meta VARBINARY(4096); DECLARE l_granted, l_ends, l_signal, l_buried BIGINT; DECLARE l_spare INT; DECLARE l_line BOOLEAN;
  IF l_owner = '' THEN
    IF l_lim > 1 OR l_shared OR EXISTS (SELECT 1 FROM holds WHERE name = p_name) THEN
      IF NOT barges THEN CALL advanced(p_name, l_lim, l_shared, at, l_token); END IF;
      IF NOT EXISTS (SELECT 1 FROM holds WHERE name = p_name) AND NOT EXISTS (SELECT 1 FROM waits WHERE name = p_name) THEN
        SET l_owner = NULL, l_lim = NULL;
      END IF;
      LEAVE handed_on;
    END IF;
    INSERT INTO places (name, owner, attempt, meta, spare, barge, ends, `signal`)
      SELECT name, owner, attempt, meta, spare, barge, ends, 0 FROM waits WHERE name = p_name ORDER BY seq;
    DELETE FROM waits WHERE name = p_name;
    UPDATE locks SET owner = NULL, line = TRUE WHERE name = p_name;
    SET l_owner = NULL, l_lim = NULL;
  END IF;
  IF NOT barges AND l_owner IS NULL AND l_token IS NOT NULL THEN
    SELECT made, meta, granted, spare, ends, `signal`, line, buried INTO l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried FROM locks WHERE name = p_name;
    IF l_line THEN
      CALL settled(p_name, at, '', l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line);
      CALL kept(p_name, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
    END IF;
  END IF;
END $$

-- wrote writes the row of a lock of any kind back.
CREATE PROCEDURE @schema@.wrote(IN p_name VARBINARY(1024), IN at BIGINT, IN strong BOOLEAN, IN l_token BIGINT, IN l_owner VARBINARY(256), IN l_lim BIGINT, IN l_shared BOOLEAN, IN l_buried BIGINT) SQL SECURITY INVOKER
BEGIN
  IF l_owner = '' THEN
    UPDATE locks SET token = l_token, owner = '', made = '', meta = NULL, granted = NULL, spare = NULL, `signal` = 0, line = FALSE, buried = l_buried, lim = l_lim, shared = l_shared,
      ends = GREATEST(COALESCE((SELECT MAX(h.ends) FROM holds h WHERE h.name = p_name), 0), COALESCE((SELECT MAX(w.ends) FROM waits w WHERE w.name = p_name), 0))
      WHERE name = p_name;
  ELSEIF l_owner IS NULL THEN
    UPDATE locks SET token = l_token, owner = NULL, `signal` = 0, buried = l_buried, lim = NULL, ends = LEAST(ends, at) WHERE name = p_name;
  ELSE
    UPDATE locks SET buried = l_buried, lim = NULL WHERE name = p_name;
  END IF;
  IF strong THEN UPDATE owners SET owner = NULLIF(l_owner, '') WHERE name = p_name; END IF;
END $$

-- blocked tells who is in the way: the lease that ends first or, without leases, the place
-- that does, of those before the place mine. The description of a waiter says that it waits.
CREATE PROCEDURE @schema@.blocked(IN p_name VARBINARY(1024), IN leases BOOLEAN, IN mine BIGINT, IN at BIGINT, OUT a_owner VARBINARY(256), OUT a_meta VARBINARY(8192), OUT a_ends_in BIGINT) SQL SECURITY INVOKER
BEGIN
  IF leases THEN
    SELECT owner, meta, ends - at INTO a_owner, a_meta, a_ends_in FROM holds WHERE name = p_name ORDER BY ends, seq LIMIT 1;
  END IF;
  IF a_owner IS NULL THEN
    SELECT owner, CONCAT('{"waiting":true', IF(LENGTH(meta) > 2, CONCAT(',', SUBSTRING(meta, 2)), '}')), ends - at INTO a_owner, a_meta, a_ends_in
      FROM waits WHERE name = p_name AND (mine IS NULL OR seq < mine) ORDER BY ends, seq LIMIT 1;
  END IF;
END $$

-- mismatched tells the kind that is in use, and by whom. a_lim is null if nobody has a lease
-- of the lock or waits for it. It is called after handed_on.
CREATE PROCEDURE @schema@.mismatched(IN p_name VARBINARY(1024), IN at BIGINT, IN l_owner VARBINARY(256), IN l_lim BIGINT, IN l_shared BOOLEAN,
  OUT a_lim BIGINT, OUT a_shared BOOLEAN, OUT a_owner VARBINARY(256), OUT a_meta VARBINARY(8192), OUT a_ends_in BIGINT) SQL SECURITY INVOKER
BEGIN
  IF l_owner = '' THEN
    SET a_lim = l_lim, a_shared = l_shared;
    CALL blocked(p_name, TRUE, NULL, at, a_owner, a_meta, a_ends_in);
  ELSE
    IF l_owner IS NOT NULL THEN
      SELECT owner, meta, ends - at INTO a_owner, a_meta, a_ends_in FROM locks WHERE name = p_name;
    ELSE
      SELECT owner, meta, ends - at INTO a_owner, a_meta, a_ends_in FROM places WHERE name = p_name AND ends > at ORDER BY ends, seq LIMIT 1;
    END IF;
    IF a_owner IS NOT NULL THEN SET a_lim = 1, a_shared = FALSE; END IF;
  END IF;
END $$

-- ask_kind makes one request, as ask does for a mutex, for p_weight of p_limit. Its verdicts
-- are those of ask and: mismatch, the lock is in use as another kind; smaller, the owner's
-- lease has less weight; mutex, the lock is free or a mutex, as was asked for.
CREATE PROCEDURE @schema@.ask_kind(p_name VARBINARY(1024), p_owner VARBINARY(256), p_attempt VARBINARY(256), p_meta VARBINARY(4096), p_ttl BIGINT, p_spare INT,
  p_wait BOOLEAN, p_barge BOOLEAN, p_durable BOOLEAN, p_limit BIGINT, p_shared BOOLEAN, p_weight BIGINT)
BEGIN
  DECLARE strong, l_shared, is_buried, barges, h_broken, a_shared, a_refreshed BOOLEAN DEFAULT FALSE;
  DECLARE at, l_token, l_lim, l_buried, h_slot, h_weight, h_token, h_ends, unused, ahead, mine, a_lim, a_ends_in BIGINT;
  DECLARE h_spare, a_position INT DEFAULT 0;
  DECLARE l_owner, h_made, a_owner VARBINARY(256); DECLARE a_meta VARBINARY(8192); DECLARE verdict VARBINARY(8);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET barges = p_wait AND p_barge;
  CALL begin_step();
  CALL opened(p_name, TRUE, strong, at, l_token, l_owner, l_lim, l_shared, l_buried);
  CALL handed_on(p_name, at, barges, l_token, l_owner, l_lim, l_shared);
  IF l_buried > at THEN CALL look_for_tomb(p_name, p_owner, p_attempt, at, is_buried); END IF;
  IF is_buried THEN
    SET verdict = 'buried';
  ELSEIF NOT l_owner <=> '' THEN
    IF p_limit = 1 AND NOT p_shared THEN
      SET verdict = 'mutex';
    ELSE
      CALL mismatched(p_name, at, l_owner, l_lim, l_shared, a_lim, a_shared, a_owner, a_meta, a_ends_in);
      IF a_lim IS NOT NULL THEN
        SET verdict = 'mismatch';
      ELSE
        SET l_owner = '', l_lim = p_limit, l_shared = p_shared, unused = p_limit;
      END IF;
    END IF;
  ELSEIF l_lim <> p_limit OR l_shared <> p_shared THEN
    SET verdict = 'mismatch';
    CALL mismatched(p_name, at, l_owner, l_lim, l_shared, a_lim, a_shared, a_owner, a_meta, a_ends_in);
  ELSE
    SELECT slot, made, weight, token, spare, ends, broken INTO h_slot, h_made, h_weight, h_token, h_spare, h_ends, h_broken FROM holds WHERE name = p_name AND owner = p_owner;
    IF h_slot IS NULL THEN
      CALL room(p_name, l_lim, unused);
      SELECT seq INTO mine FROM waits WHERE name = p_name AND owner = p_owner;
    ELSEIF h_broken THEN
      SET verdict = 'buried';
    ELSEIF p_weight > h_weight THEN
      SET verdict = 'smaller';
    ELSE
      SET verdict = 'again', h_ends = GREATEST(h_ends, at + p_ttl), a_ends_in = h_ends - at;
      UPDATE holds SET made = IF(p_attempt <> '' AND p_attempt <> h_made, '', h_made), ends = h_ends WHERE name = p_name AND slot = h_slot;
    END IF;
  END IF;

  IF verdict IS NULL THEN
    SET ahead = 0;
    IF NOT barges THEN
      SELECT LEAST(COALESCE(SUM(weight), 0), 9223372036854775807) INTO ahead FROM waits WHERE name = p_name AND (mine IS NULL OR seq < mine);
    END IF;
    IF p_weight <= unused - ahead THEN
      SET verdict = 'granted', a_ends_in = p_ttl;
      IF mine IS NOT NULL THEN DELETE FROM waits WHERE name = p_name AND seq = mine; END IF;
      CALL entered(p_name, l_lim, l_shared, p_owner, p_attempt, p_meta, p_weight, p_spare, at + p_ttl, at, l_token, h_token, h_spare, h_slot);
    ELSE
      SET verdict = 'busy';
      CALL blocked(p_name, p_weight > unused, mine, at, a_owner, a_meta, a_ends_in);
      IF p_wait THEN
        SET a_refreshed = TRUE;
        IF mine IS NOT NULL THEN
          UPDATE waits SET ends = GREATEST(ends, at + p_ttl), attempt = p_attempt, meta = p_meta, weight = p_weight, spare = p_spare, barge = p_barge WHERE name = p_name AND seq = mine;
        ELSE
          INSERT INTO waits (name, owner, attempt, meta, weight, spare, barge, ends) VALUES (p_name, p_owner, p_attempt, p_meta, p_weight, p_spare, p_barge, at + p_ttl);
          SET mine = LAST_INSERT_ID();
        END IF;
      END IF;
      SELECT COUNT(*) INTO a_position FROM waits WHERE name = p_name AND seq <= mine;
    END IF;
  END IF;
  CALL wrote(p_name, at, strong, l_token, l_owner, l_lim, l_shared, l_buried);
  COMMIT;
  IF verdict NOT IN ('granted', 'again') THEN SET h_token = NULL, h_spare = 0, h_slot = NULL; END IF;
  SELECT verdict, h_token AS token, h_spare AS spare, h_slot AS slot, a_ends_in AS ends_in, a_owner AS owner, HEX(a_meta) AS meta, a_position AS position,
    a_lim AS lim, a_shared AS shared, a_refreshed AS refreshed, at;
END $$

-- await_kind looks whether a waiter has been handed the lock, and refreshes its place if
-- an eighth of its TTL is over. Most looks need to write nothing.
CREATE PROCEDURE @schema@.await_kind(p_name VARBINARY(1024), p_owner VARBINARY(256), p_ttl BIGINT)
BEGIN
  DECLARE strong, l_shared, quiet, a_refreshed BOOLEAN DEFAULT FALSE;
  DECLARE at, l_token, l_lim, l_ends, l_buried, h_slot, h_token, h_ends, q_seq, q_weight, q_ends, unused, a_ends_in BIGINT;
  DECLARE looks, h_spare, a_position INT DEFAULT 0;
  DECLARE l_owner, a_owner VARBINARY(256); DECLARE a_meta VARBINARY(8192); DECLARE verdict VARBINARY(8) DEFAULT 'gone';
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  tries: WHILE looks < 2 DO
    SET looks = looks + 1;
    IF looks = 1 THEN
      SELECT owner, ends, lim INTO l_owner, l_ends, l_lim FROM locks WHERE name = p_name;
      SET at = @clock@;
    ELSE
      CALL opened(p_name, FALSE, strong, at, l_token, l_owner, l_lim, l_shared, l_buried);
      IF l_token IS NOT NULL THEN
        CALL handed_on(p_name, at, FALSE, l_token, l_owner, l_lim, l_shared);
        UPDATE waits SET ends = GREATEST(ends, at + p_ttl) WHERE name = p_name AND owner = p_owner;
        CALL wrote(p_name, at, strong, l_token, l_owner, l_lim, l_shared, l_buried);
      END IF;
      SET l_ends = at + 1; -- all that is left counts
    END IF;
    IF l_owner = '' AND l_ends > at THEN
      SELECT slot, token, spare, ends INTO h_slot, h_token, h_spare, h_ends FROM holds WHERE name = p_name AND owner = p_owner AND ends > at;
      IF h_slot IS NOT NULL THEN
        SET verdict = 'again', a_ends_in = h_ends - at;
        LEAVE tries;
      END IF;
      SET q_seq = NULL;
      SELECT seq, weight, ends INTO q_seq, q_weight, q_ends FROM waits WHERE name = p_name AND owner = p_owner;
      IF q_seq IS NOT NULL THEN
        CALL room(p_name, l_lim, unused);
        -- Nothing has ended, and there is no room for the first in the queue.
        SET quiet = looks = 1 AND q_ends - at > p_ttl - p_ttl DIV 8
          AND NOT EXISTS (SELECT 1 FROM holds WHERE name = p_name AND ends <= at) AND NOT EXISTS (SELECT 1 FROM waits WHERE name = p_name AND ends <= at)
          AND unused < (SELECT weight FROM waits WHERE name = p_name ORDER BY seq LIMIT 1);
        IF quiet OR looks = 2 THEN
          SET verdict = 'busy', a_refreshed = NOT quiet;
          CALL blocked(p_name, q_weight > unused, q_seq, at, a_owner, a_meta, a_ends_in);
          SELECT COUNT(*) INTO a_position FROM waits WHERE name = p_name AND seq <= q_seq;
          LEAVE tries;
        END IF;
      END IF;
    END IF;
  END WHILE;
  COMMIT;
  SELECT verdict, h_token AS token, h_spare AS spare, h_slot AS slot, a_ends_in AS ends_in, a_owner AS owner, HEX(a_meta) AS meta, a_position AS position,
    NULL AS lim, FALSE AS shared, a_refreshed AS refreshed, at;
END $$

-- release_kind is release for a lease of another kind than a mutex.
CREATE PROCEDURE @schema@.release_kind(p_name VARBINARY(1024), p_owner VARBINARY(256), p_attempt VARBINARY(256), p_undo BOOLEAN, p_tomb BIGINT, p_always BOOLEAN)
BEGIN
  DECLARE strong, done, l_shared, h_broken BOOLEAN DEFAULT FALSE; DECLARE at, l_token, l_lim, l_buried, h_slot, h_ends BIGINT;
  DECLARE l_owner, h_made VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  CALL opened(p_name, p_tomb > 0, strong, at, l_token, l_owner, l_lim, l_shared, l_buried);
  IF l_token IS NOT NULL THEN
    IF l_owner = '' THEN
      SELECT slot, made, ends, broken INTO h_slot, h_made, h_ends, h_broken FROM holds WHERE name = p_name AND owner = p_owner;
      SET done = h_slot IS NOT NULL AND (p_attempt = '' OR h_made = p_attempt OR h_made = '' AND NOT p_undo);
      IF done THEN
        DELETE FROM holds WHERE name = p_name AND slot = h_slot;
        IF h_broken THEN CALL bury(p_name, p_owner, h_made, h_ends, l_buried); END IF;
      ELSE
        DELETE FROM waits WHERE name = p_name AND owner = p_owner;
      END IF;
    END IF;
    IF p_tomb > 0 AND (p_always OR NOT done) THEN CALL bury(p_name, p_owner, p_attempt, at + p_tomb, l_buried); END IF;
    CALL handed_on(p_name, at, FALSE, l_token, l_owner, l_lim, l_shared);
    CALL wrote(p_name, at, strong, l_token, l_owner, l_lim, l_shared, l_buried);
  END IF;
  COMMIT;
  SELECT done, at;
END $$

-- renew_kind is renew for leases of other kinds than a mutex. No letter is w.
CREATE PROCEDURE @schema@.renew_kind(p_names LONGTEXT CHARACTER SET ascii, p_owners LONGTEXT CHARACTER SET ascii, p_ttls LONGTEXT CHARACTER SET ascii, p_durable BOOLEAN)
BEGIN
  DECLARE held LONGTEXT CHARACTER SET ascii DEFAULT '';
  DECLARE at, l_ends, h_ends BIGINT; DECLARE h_broken BOOLEAN;
  DECLARE l_name VARBINARY(1024); DECLARE l_owner, o_owner VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  WHILE p_names <> '' DO
    SET l_name = UNHEX(SUBSTRING_INDEX(p_names, ' ', 1)), o_owner = SUBSTRING_INDEX(p_owners, ' ', 1), l_owner = NULL, h_ends = NULL;
    SELECT owner, ends INTO l_owner, l_ends FROM locks WHERE name = l_name FOR UPDATE;
    SET at = @clock@;
    IF l_owner = '' AND l_ends > at THEN
      SELECT ends, broken INTO h_ends, h_broken FROM holds WHERE name = l_name AND owner = o_owner AND ends > at;
    END IF;
    IF h_ends IS NOT NULL AND NOT h_broken THEN
      SET h_ends = GREATEST(h_ends, at + SUBSTRING_INDEX(p_ttls, ' ', 1));
      UPDATE holds SET ends = h_ends WHERE name = l_name AND owner = o_owner;
      UPDATE locks SET ends = GREATEST(ends, h_ends) WHERE name = l_name;
      SET held = CONCAT(held, 't');
    ELSE
      SET held = CONCAT(held, 'f');
    END IF;
    SET p_names = SUBSTRING(p_names, CHAR_LENGTH(SUBSTRING_INDEX(p_names, ' ', 1)) + 2);
    SET p_owners = SUBSTRING(p_owners, CHAR_LENGTH(SUBSTRING_INDEX(p_owners, ' ', 1)) + 2);
    SET p_ttls = SUBSTRING(p_ttls, CHAR_LENGTH(SUBSTRING_INDEX(p_ttls, ' ', 1)) + 2);
  END WHILE;
  SET at = @clock@;
  COMMIT;
  SELECT held, at;
END $$

-- reserve_kind is reserve for a lease of another kind than a mutex that shares no token.
CREATE PROCEDURE @schema@.reserve_kind(p_name VARBINARY(1024), p_owner VARBINARY(256), p_above BIGINT, p_count INT, p_durable BOOLEAN)
BEGIN
  DECLARE held, waiting, l_shared BOOLEAN DEFAULT FALSE; DECLARE at, l_token, l_ends, l_lim, r_token BIGINT; DECLARE r_count INT;
  DECLARE l_owner VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  SELECT token, owner, ends, lim, shared INTO l_token, l_owner, l_ends, l_lim, l_shared FROM locks WHERE name = p_name FOR UPDATE;
  SET at = @clock@;
  IF l_owner = '' AND l_ends > at AND EXISTS (SELECT 1 FROM holds WHERE name = p_name AND owner = p_owner AND ends > at AND NOT broken AND NOT (l_shared AND weight < l_lim)) THEN
    SET held = TRUE;
    SET r_token = GREATEST(GREATEST(l_token, p_above) + 1, at);
    SET r_count = LEAST(p_count, GREATEST(1, at + 1000001 - r_token));
    UPDATE locks SET token = r_token + r_count - 1 WHERE name = p_name;
    SET waiting = EXISTS (SELECT 1 FROM waits WHERE name = p_name AND ends > at);
  END IF;
  COMMIT;
  SELECT held, r_token AS token, r_count AS count, waiting, at;
END $$

-- downgrade makes the writer of a read-write lock a reader, and admits the readers that
-- wait. A reader is granted what it has, and nobody anything whose lease was broken.
CREATE PROCEDURE @schema@.downgrade(p_name VARBINARY(1024), p_owner VARBINARY(256), p_ttl BIGINT, p_durable BOOLEAN)
BEGIN
  DECLARE strong, l_shared BOOLEAN DEFAULT FALSE; DECLARE at, l_token, l_lim, l_buried, h_slot, h_weight, h_token BIGINT; DECLARE h_spare INT;
  DECLARE l_owner VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  CALL opened(p_name, FALSE, strong, at, l_token, l_owner, l_lim, l_shared, l_buried);
  IF l_token IS NOT NULL THEN
    IF l_owner = '' AND l_shared THEN
      SELECT slot, weight, token, spare INTO h_slot, h_weight, h_token, h_spare FROM holds WHERE name = p_name AND owner = p_owner AND NOT broken;
    END IF;
    IF h_slot IS NOT NULL THEN
      IF h_weight = l_lim THEN CALL drawn(0, at, l_token, h_token, h_spare); END IF;
      UPDATE holds SET weight = IF(h_weight = l_lim, 1, h_weight), token = h_token, spare = h_spare, ends = GREATEST(ends, at + p_ttl) WHERE name = p_name AND slot = h_slot;
    END IF;
    CALL handed_on(p_name, at, h_slot IS NULL, l_token, l_owner, l_lim, l_shared);
    CALL wrote(p_name, at, strong, l_token, l_owner, l_lim, l_shared, l_buried);
  END IF;
  COMMIT;
  SELECT h_slot IS NOT NULL AS held, h_token AS token, h_slot AS slot, at;
END $$

-- resize changes the number of permits of a semaphore that is in use. Leases stay as they
-- are, and waiters lose their places.
CREATE PROCEDURE @schema@.resize(p_name VARBINARY(1024), p_from BIGINT, p_to BIGINT)
BEGIN
  DECLARE strong, is_buried, l_shared, a_shared BOOLEAN DEFAULT FALSE;
  DECLARE at, l_token, l_lim, l_buried, a_lim, a_ends_in BIGINT;
  DECLARE l_owner, l_made, a_owner VARBINARY(256); DECLARE a_meta VARBINARY(8192); DECLARE verdict VARBINARY(8) DEFAULT 'done';
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  SET strong = TRUE;
  CALL opened(p_name, FALSE, strong, at, l_token, l_owner, l_lim, l_shared, l_buried);
  IF l_token IS NOT NULL THEN
    CALL handed_on(p_name, at, TRUE, l_token, l_owner, l_lim, l_shared);
    CALL mismatched(p_name, at, l_owner, l_lim, l_shared, a_lim, a_shared, a_owner, a_meta, a_ends_in);
    IF a_lim IS NULL OR a_lim = p_to AND NOT a_shared THEN
      SET a_lim = NULL;
    ELSEIF a_lim <> p_from OR a_shared THEN
      SET verdict = 'mismatch';
    ELSEIF l_owner = '' THEN
      DELETE FROM waits WHERE name = p_name;
      SET l_lim = p_to;
    ELSE -- a mutex is a semaphore of one
      DELETE FROM places WHERE name = p_name;
      UPDATE locks SET line = FALSE WHERE name = p_name;
      IF l_owner IS NOT NULL THEN
        SELECT made INTO l_made FROM locks WHERE name = p_name;
        CALL look_for_tomb(p_name, l_owner, l_made, at, is_buried);
        INSERT INTO holds (name, slot, owner, made, meta, weight, token, spare, began, ends, broken)
          SELECT name, 0, owner, made, meta, 1, granted, spare, granted, ends, is_buried FROM locks WHERE name = p_name;
        SET l_owner = '', l_lim = p_to, l_shared = FALSE;
      END IF;
    END IF;
    CALL handed_on(p_name, at, TRUE, l_token, l_owner, l_lim, l_shared);
    CALL wrote(p_name, at, strong, l_token, l_owner, l_lim, l_shared, l_buried);
  END IF;
  COMMIT;
  SELECT verdict, NULL AS token, 0 AS spare, NULL AS slot, a_ends_in AS ends_in, a_owner AS owner, HEX(a_meta) AS meta, 0 AS position,
    a_lim AS lim, a_shared AS shared, FALSE AS refreshed, at;
END $$

-- break_lease takes a lease of any kind away from its owner, for as long as it can last.
-- The lease of a mutex gets a tombstone, which refuses to renew it, and requests of the
-- owner. Another one is marked, and gets its tombstone when it is released. With p_now it
-- ends. Like every step it hands on a lock that is free. The first note about a lease is kept. left_in is how
-- long the lease can last. broke is false if the owner has no lease with that token, and
-- had none that was broken last.
CREATE PROCEDURE @schema@.break_lease(p_name VARBINARY(1024), p_owner VARBINARY(256), p_token BIGINT, p_now BOOLEAN, p_note VARBINARY(16384), p_keep BIGINT)
BEGIN
  DECLARE strong, broke, l_shared, was_broken BOOLEAN DEFAULT FALSE; DECLARE at, l_token, l_lim, l_buried, h_slot, h_ends BIGINT; DECLARE left_in BIGINT DEFAULT 0;
  DECLARE l_owner, h_made VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  SET strong = TRUE;
  CALL opened(p_name, FALSE, strong, at, l_token, l_owner, l_lim, l_shared, l_buried);
  IF l_owner = '' THEN
    SELECT slot, made, ends, broken INTO h_slot, h_made, h_ends, was_broken FROM holds WHERE name = p_name AND owner = p_owner AND token = p_token;
  ELSEIF l_owner = p_owner THEN
    SELECT made, ends INTO h_made, h_ends FROM locks WHERE name = p_name AND granted = p_token;
    SET was_broken = EXISTS (SELECT 1 FROM breaks WHERE name = p_name AND owner = p_owner AND token = p_token AND ends > at);
  END IF;
  IF h_ends IS NULL THEN
    SET broke = EXISTS (SELECT 1 FROM breaks WHERE name = p_name AND owner = p_owner AND token = p_token AND ends > at);
  ELSE
    SET broke = TRUE;
    IF NOT was_broken THEN
      INSERT INTO breaks (name, owner, token, note, ends) VALUES (p_name, p_owner, p_token, p_note, h_ends + p_keep)
        ON DUPLICATE KEY UPDATE owner = p_owner, token = p_token, note = p_note, ends = h_ends + p_keep;
    END IF;
    IF h_slot IS NULL OR p_now THEN CALL bury(p_name, p_owner, h_made, h_ends, l_buried); END IF;
    IF NOT p_now THEN
      SET left_in = h_ends - at;
      UPDATE holds SET broken = TRUE WHERE name = p_name AND slot = h_slot;
    ELSEIF h_slot IS NOT NULL THEN
      DELETE FROM holds WHERE name = p_name AND slot = h_slot;
    ELSE
      UPDATE locks SET owner = NULL, `signal` = 0, ends = at WHERE name = p_name;
      SET l_owner = NULL;
    END IF;
  END IF;
  IF l_token IS NOT NULL THEN
    UPDATE locks SET buried = l_buried WHERE name = p_name;
    CALL handed_on(p_name, at, FALSE, l_token, l_owner, l_lim, l_shared);
    CALL wrote(p_name, at, strong, l_token, l_owner, l_lim, l_shared, l_buried);
  END IF;
  COMMIT;
  SELECT broke, left_in;
END $$

