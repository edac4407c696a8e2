-- The procedures. Each call is one transaction. No row stays locked after it, except
-- by hold. The answer is given after the commit, so that an answer counts. A procedure
-- that decides reads the clock after it has locked the row. The server decides whether
-- a commit waits for the disk: p_durable has no effect.

-- ask makes one request. With p_wait an owner that is refused gets a place, or has
-- it refreshed, and the session takes p_signal. The verdict is kind if the lock is in use
-- as another kind.
CREATE PROCEDURE @schema@.ask(p_name VARBINARY(1024), p_owner VARBINARY(256), p_attempt VARBINARY(256), p_meta VARBINARY(4096), p_ttl BIGINT, p_spare INT,
  p_wait BOOLEAN, p_barge BOOLEAN, p_durable BOOLEAN, p_signal BIGINT)
BEGIN
  DECLARE strong, l_line, had_line, is_buried, a_refreshed BOOLEAN DEFAULT FALSE;
  DECLARE at, l_token, l_granted, l_ends, l_signal, l_buried, a_ends_in, a_ahead BIGINT; DECLARE l_spare, a_position INT;
  DECLARE l_owner, l_made, a_owner VARBINARY(256); DECLARE l_meta, a_meta VARBINARY(4096); DECLARE verdict VARBINARY(8);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  SELECT token, owner, meta, ends, `signal`, line, buried INTO l_token, l_owner, l_meta, l_ends, l_signal, l_line, l_buried FROM locks WHERE name = p_name;
  SET at = @clock@;
  SET strong = l_owner IS NULL OR l_owner = p_owner OR l_ends <= at;
  IF l_owner = '' AND l_ends > at THEN
    SET verdict = 'kind';
  ELSEIF strong OR p_wait OR l_buried > at THEN
    CALL locked(p_name, p_owner, TRUE, strong, at, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
    IF l_buried > at THEN CALL look_for_tomb(p_name, p_owner, p_attempt, at, is_buried); END IF;
    IF l_owner = '' AND l_ends > at THEN
      SET verdict = 'kind';
    ELSEIF is_buried THEN
      SET verdict = 'buried';
    ELSE
      IF strong AND (NOT p_barge OR NOT p_wait) THEN
        CALL settled(p_name, at, p_owner, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line);
      ELSEIF l_ends <= at THEN
        SET l_owner = NULL;
      END IF;
      IF l_owner = p_owner THEN
        SET verdict = 'again';
        IF p_attempt <> '' AND p_attempt <> l_made THEN SET l_made = ''; END IF;
        SET l_ends = GREATEST(l_ends, at + p_ttl);
      ELSEIF l_owner IS NULL AND (p_barge OR NOT p_wait OR NOT l_line OR NOT EXISTS (
          SELECT 1 FROM places p WHERE p.name = p_name AND p.owner <> p_owner AND p.ends > at AND p.seq <
            COALESCE((SELECT MAX(q.seq) FROM places q WHERE q.name = p_name AND q.owner = p_owner), 9223372036854775807))) THEN
        SET verdict = 'granted';
        IF l_line THEN DELETE FROM places WHERE name = p_name AND owner = p_owner; END IF;
        CALL drawn(p_spare, at, l_token, l_granted, l_spare);
        SET l_owner = p_owner, l_made = p_attempt, l_meta = p_meta, l_ends = at + p_ttl, l_signal = 0;
      ELSEIF p_wait THEN
        IF p_signal <> 0 AND NOT COALESCE(GET_LOCK(CONCAT('leasehold ', p_signal), 0), FALSE) THEN SET p_signal = 0; END IF;
        UPDATE places SET ends = GREATEST(ends, at + p_ttl), attempt = p_attempt, meta = p_meta, spare = p_spare, barge = p_barge,
          `signal` = p_signal WHERE name = p_name AND owner = p_owner AND ends > at;
        IF NOT EXISTS (SELECT 1 FROM places WHERE name = p_name AND owner = p_owner AND ends > at) THEN
          DELETE FROM places WHERE name = p_name AND owner = p_owner;
          INSERT INTO places (name, owner, attempt, meta, spare, barge, ends, `signal`)
          VALUES (p_name, p_owner, p_attempt, p_meta, p_spare, p_barge, at + p_ttl, p_signal);
        END IF;
        SET had_line = l_line, l_line = TRUE, a_refreshed = TRUE;
      END IF;
      IF strong THEN
        CALL kept(p_name, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
      ELSEIF l_line AND NOT had_line THEN
        UPDATE locks SET line = TRUE WHERE name = p_name;
      END IF;
    END IF;
  END IF;
  IF verdict IS NULL THEN
    SET verdict = 'busy', l_spare = 0, l_granted = NULL;
    CALL refused(p_name, p_owner, at, l_owner, l_meta, l_ends, l_signal, l_line, a_owner, a_meta, a_ends_in, a_position, a_ahead);
  ELSEIF verdict IN ('buried', 'kind') THEN
    SET l_spare = 0, l_granted = NULL;
  ELSE
    SET a_ends_in = l_ends - at;
  END IF;
  COMMIT;
  SELECT verdict, l_granted AS token, l_spare AS spare, a_ends_in AS ends_in, a_owner AS owner, HEX(a_meta) AS meta, a_position AS position, a_ahead AS ahead,
    FALSE AS waited, a_refreshed AS refreshed, at, CONNECTION_ID() AS session;
END $$

-- await looks whether a waiter has been handed the lock. If not, and if p_block is
-- positive, it first waits until the session of the one before it (see refused) gives its
-- signal: because it released the lock or left the queue, or because it is gone. The signal
-- is a hint, and the rows decide. No transaction is open meanwhile. It waits for at
-- most p_block microseconds, and not beyond the end of the lease that it waits for.
-- p_signal replaces the signal of the place: the session takes it if that is a new one.
CREATE PROCEDURE @schema@.await(p_name VARBINARY(1024), p_owner VARBINARY(256), p_ttl BIGINT, p_block BIGINT, p_signal BIGINT)
BEGIN
  DECLARE strong, signalled, l_line, a_waited, a_refreshed BOOLEAN DEFAULT FALSE;
  DECLARE at, l_token, l_granted, l_ends, l_signal, l_buried, q_seq, q_ends, q_signal, a_ends_in, a_ahead BIGINT; DECLARE l_spare, a_position INT;
  DECLARE l_owner, l_made, a_owner VARBINARY(256); DECLARE l_meta, a_meta VARBINARY(4096); DECLARE verdict VARBINARY(8);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  looks: LOOP
    CALL begin_step();
    SET l_token = NULL, q_seq = NULL;
    SELECT token, owner, meta, granted, spare, ends, `signal`, line INTO l_token, l_owner, l_meta, l_granted, l_spare, l_ends, l_signal, l_line FROM locks WHERE name = p_name;
    SELECT seq, ends, `signal` INTO q_seq, q_ends, q_signal FROM places WHERE name = p_name AND owner = p_owner;
    SET at = @clock@;
    IF q_seq IS NULL OR l_owner IS NULL OR l_ends <= at OR p_block <= 0 THEN LEAVE looks; END IF;
    CALL refused(p_name, p_owner, at, l_owner, l_meta, l_ends, l_signal, l_line, a_owner, a_meta, a_ends_in, a_position, a_ahead);
    IF a_ahead = 0 THEN LEAVE looks; END IF;
    COMMIT;
    IF a_ahead = l_signal THEN SET p_block = LEAST(p_block, l_ends - at); END IF;
    /*M!100600 IF @@SESSION.max_statement_time > 0 THEN SET p_block = LEAST(p_block, @@SESSION.max_statement_time * 500000); END IF; */
    SET a_waited = TRUE, signalled = COALESCE(GET_LOCK(CONCAT('leasehold ', a_ahead), p_block / 1000000), FALSE);
    IF signalled THEN DO RELEASE_LOCK(CONCAT('leasehold ', a_ahead)); END IF;
    SET p_block = 0;
  END LOOP;

  IF l_owner = p_owner AND l_ends > at THEN
    SET verdict = 'again';
  ELSEIF NOT signalled AND q_ends - at > p_ttl - p_ttl DIV 8 AND q_signal = p_signal AND l_owner IS NOT NULL AND l_ends > at THEN
    SET verdict = 'busy'; -- most looks need to write nothing
  ELSE
    SET strong = l_owner IS NULL OR l_ends <= at;
    CALL locked(p_name, NULL, FALSE, strong, at, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
    IF l_token IS NOT NULL AND strong THEN
      CALL settled(p_name, at, p_owner, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line);
      CALL kept(p_name, l_token, l_owner, l_made, l_meta, l_granted, l_spare, l_ends, l_signal, l_line, l_buried);
    END IF;
    IF l_owner = p_owner AND l_ends > at THEN
      SET verdict = 'again';
    ELSEIF NOT EXISTS (SELECT 1 FROM places WHERE name = p_name AND owner = p_owner AND ends > at) THEN
      SET verdict = 'gone';
    ELSE
      IF p_signal <> 0 AND NOT q_signal <=> p_signal AND NOT COALESCE(GET_LOCK(CONCAT('leasehold ', p_signal), 0), FALSE) THEN SET p_signal = 0; END IF;
      UPDATE places SET ends = GREATEST(ends, at + p_ttl), `signal` = p_signal WHERE name = p_name AND owner = p_owner AND ends > at;
      SET verdict = 'busy', a_refreshed = TRUE;
    END IF;
  END IF;
  IF verdict = 'again' THEN
    SET a_ends_in = l_ends - at, a_owner = NULL, a_meta = NULL;
  ELSE
    SET l_granted = NULL, l_spare = 0;
    IF verdict = 'busy' THEN
      CALL refused(p_name, p_owner, at, l_owner, l_meta, l_ends, l_signal, l_line, a_owner, a_meta, a_ends_in, a_position, a_ahead);
    END IF;
  END IF;
  COMMIT;
  SELECT verdict, l_granted AS token, l_spare AS spare, a_ends_in AS ends_in, a_owner AS owner, HEX(a_meta) AS meta, a_position AS position, a_ahead AS ahead,
    a_waited AS waited, a_refreshed AS refreshed, at, CONNECTION_ID() AS session;
END $$

-- release ends the owner's lease, or its place, and hands the lock on (see released).
-- If p_signal is not 0, the session took it before and gives it after the commit.
CREATE PROCEDURE @schema@.release(p_name VARBINARY(1024), p_owner VARBINARY(256), p_attempt VARBINARY(256), p_undo BOOLEAN, p_tomb BIGINT, p_always BOOLEAN, p_signal BIGINT)
BEGIN
  DECLARE done BOOLEAN; DECLARE at, l_ends BIGINT; DECLARE l_owner VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  CALL released(p_name, p_owner, p_attempt, p_undo, p_tomb, p_always, done, at, l_owner, l_ends);
  COMMIT;
  IF p_signal <> 0 THEN DO RELEASE_LOCK(CONCAT('leasehold ', p_signal)); END IF;
  SELECT done, at, CONNECTION_ID() AS session;
END $$

-- release_and_rejoin is release, followed by a place for the owner p_next if the lock has
-- passed to another owner. The session takes p_next_signal for the place.
CREATE PROCEDURE @schema@.release_and_rejoin(p_name VARBINARY(1024), p_owner VARBINARY(256), p_attempt VARBINARY(256), p_undo BOOLEAN, p_tomb BIGINT, p_always BOOLEAN, p_signal BIGINT,
  p_next VARBINARY(256), p_next_attempt VARBINARY(256), p_meta VARBINARY(4096), p_ttl BIGINT, p_spare INT, p_barge BOOLEAN, p_durable BOOLEAN, p_next_signal BIGINT)
BEGIN
  DECLARE done, standing BOOLEAN; DECLARE at, l_ends BIGINT; DECLARE l_owner VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  CALL released(p_name, p_owner, p_attempt, p_undo, p_tomb, p_always, done, at, l_owner, l_ends);
  SET standing = COALESCE(done AND l_owner IS NOT NULL AND l_ends > at, FALSE);
  IF standing THEN
    IF p_next_signal <> 0 AND NOT COALESCE(GET_LOCK(CONCAT('leasehold ', p_next_signal), 0), FALSE) THEN SET p_next_signal = 0; END IF;
    INSERT INTO places (name, owner, attempt, meta, spare, barge, ends, `signal`)
    VALUES (p_name, p_next, p_next_attempt, p_meta, p_spare, p_barge, at + p_ttl, p_next_signal);
    UPDATE locks SET line = TRUE WHERE name = p_name;
  END IF;
  COMMIT;
  IF p_signal <> 0 THEN DO RELEASE_LOCK(CONCAT('leasehold ', p_signal)); END IF;
  SELECT done, standing;
END $$

-- renew makes leases last at least their TTLs. The lists are separated by spaces;
-- names are in hexadecimal and in the order of the names, so that sessions do not wait
-- for each other in a circle. The answer has a letter for each, in the same order: f,
-- not held; t, renewed; w, renewed, and waiters wait for a signal that nobody took.
CREATE PROCEDURE @schema@.renew(p_names LONGTEXT CHARACTER SET ascii, p_owners LONGTEXT CHARACTER SET ascii, p_ttls LONGTEXT CHARACTER SET ascii, p_durable BOOLEAN)
BEGIN
  DECLARE held LONGTEXT CHARACTER SET ascii DEFAULT '';
  DECLARE at, l_ends, l_signal, l_buried BIGINT; DECLARE l_line, is_buried BOOLEAN;
  DECLARE l_name VARBINARY(1024); DECLARE l_owner, l_made, o_owner VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  WHILE p_names <> '' DO
    SET l_name = UNHEX(SUBSTRING_INDEX(p_names, ' ', 1)), o_owner = SUBSTRING_INDEX(p_owners, ' ', 1), l_owner = NULL;
    SELECT owner, made, ends, `signal`, line, buried INTO l_owner, l_made, l_ends, l_signal, l_line, l_buried FROM locks WHERE name = l_name FOR UPDATE;
    SET at = @clock@, is_buried = FALSE;
    IF l_buried > at THEN CALL look_for_tomb(l_name, l_owner, l_made, at, is_buried); END IF; -- it was broken
    IF l_owner = o_owner AND l_ends > at AND NOT is_buried THEN
      UPDATE locks SET ends = GREATEST(ends, at + SUBSTRING_INDEX(p_ttls, ' ', 1)) WHERE name = l_name;
      SET held = CONCAT(held, IF(l_line AND l_signal = 0, 'w', 't'));
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

-- take_signal makes the session take p_signal for the owner's lease, so that the
-- next waiter can wait for it.
CREATE PROCEDURE @schema@.take_signal(p_name VARBINARY(1024), p_owner VARBINARY(256), p_signal BIGINT)
BEGIN
  DECLARE taken BOOLEAN DEFAULT FALSE; DECLARE at BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  IF GET_LOCK(CONCAT('leasehold ', p_signal), 0) THEN
    SET at = @clock@;
    UPDATE locks SET `signal` = p_signal WHERE name = p_name AND owner = p_owner AND `signal` = 0 AND ends > at;
    SET taken = ROW_COUNT() = 1;
    IF NOT taken THEN DO RELEASE_LOCK(CONCAT('leasehold ', p_signal)); END IF;
  END IF;
  COMMIT;
  SELECT taken, CONNECTION_ID() AS session;
END $$

-- reserve reserves up to p_count tokens above p_above for the owner's lease.
CREATE PROCEDURE @schema@.reserve(p_name VARBINARY(1024), p_owner VARBINARY(256), p_above BIGINT, p_count INT, p_durable BOOLEAN)
BEGIN
  DECLARE held, waiting, l_line, is_buried BOOLEAN DEFAULT FALSE; DECLARE at, l_token, l_ends, l_buried, r_token BIGINT; DECLARE r_count INT;
  DECLARE l_owner, l_made VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  CALL begin_step();
  SELECT token, owner, made, ends, line, buried INTO l_token, l_owner, l_made, l_ends, l_line, l_buried FROM locks WHERE name = p_name FOR UPDATE;
  SET at = @clock@;
  IF l_buried > at THEN CALL look_for_tomb(p_name, l_owner, l_made, at, is_buried); END IF; -- it was broken
  SET held = COALESCE(l_owner = p_owner AND l_ends > at AND NOT is_buried, FALSE);
  IF held THEN
    SET r_token = GREATEST(GREATEST(l_token, p_above) + 1, at);
    SET r_count = LEAST(p_count, GREATEST(1, at + 1000001 - r_token));
    UPDATE locks SET token = r_token + r_count - 1 WHERE name = p_name;
    SET waiting = l_line AND EXISTS (SELECT 1 FROM places p WHERE p.name = p_name AND p.ends > at);
  END IF;
  COMMIT;
  SELECT held, r_token AS token, r_count AS count, waiting, at;
END $$

-- inspect returns the leases of a lock, with position 0, and the places of its
-- waiters. A free lock without waiters has no row. The lease that was broken last has
-- position -1, after those, and the note about it instead of a description. lim is null for
-- a mutex. It works on a replica, too. A session without autocommit may have a transaction
-- open that sees an older state.
CREATE PROCEDURE @schema@.inspect(p_name VARBINARY(1024), p_most INT)
BEGIN
  DECLARE at BIGINT DEFAULT @clock@;
  COMMIT;
  SELECT position, owner, meta, token, ends_in, lim, shared, weight, slot, held_for, broken FROM (
    SELECT 0 AS position, owner, HEX(meta) AS meta, granted AS token, ends - at AS ends_in, NULL AS lim, FALSE AS shared, 1 AS weight, 0 AS slot, NULL AS held_for, FALSE AS broken, 0 AS seq
      FROM locks WHERE name = p_name AND owner <> '' AND ends > at
    UNION ALL
    SELECT 0, h.owner, HEX(h.meta), h.token, h.ends - at, l.lim, l.shared, h.weight, h.slot, at - h.began, h.broken, h.seq
      FROM locks l JOIN holds h ON h.name = l.name WHERE l.name = p_name AND l.owner = '' AND l.ends > at AND h.ends > at
    UNION ALL
    (SELECT ROW_NUMBER() OVER (ORDER BY seq), owner, HEX(meta), 0, ends - at, NULL, FALSE, 1, 0, NULL, FALSE, seq
      FROM places WHERE name = p_name AND ends > at ORDER BY seq LIMIT p_most)
    UNION ALL
    (SELECT ROW_NUMBER() OVER (ORDER BY w.seq), w.owner, HEX(w.meta), 0, w.ends - at, l.lim, l.shared, w.weight, 0, NULL, FALSE, w.seq
      FROM locks l JOIN waits w ON w.name = l.name WHERE l.name = p_name AND l.owner = '' AND l.ends > at AND w.ends > at ORDER BY w.seq LIMIT p_most)
    UNION ALL
    SELECT -1, owner, HEX(note), token, 0, NULL, FALSE, 1, 0, NULL, FALSE, 0 FROM breaks WHERE name = p_name AND ends > at
  ) shown ORDER BY position < 0, position, seq;
  COMMIT;
END $$

-- list returns the locks that are held, whose names start with p_prefix and follow
-- p_after, in the order of their names: a row for each lease, as inspect has it. A lock
-- that is only waited for has one row, without an owner.
CREATE PROCEDURE @schema@.list(p_prefix VARBINARY(1024), p_after VARBINARY(1024), p_most INT)
BEGIN
  DECLARE at BIGINT DEFAULT @clock@;
  COMMIT;
  SELECT HEX(l.name) AS name, IF(l.owner = '', h.owner, l.owner) AS owner, HEX(COALESCE(h.meta, l.meta)) AS meta, COALESCE(h.token, l.granted) AS token,
      COALESCE(h.ends, l.ends) - at AS ends_in, IF(l.owner = '', l.lim, NULL) AS lim, l.shared, h.weight, h.slot, at - h.began AS held_for, h.broken
    FROM (SELECT * FROM locks o WHERE o.name >= p_prefix AND o.name > p_after AND SUBSTRING(o.name, 1, LENGTH(p_prefix)) = p_prefix
      AND o.owner IS NOT NULL AND o.ends > at ORDER BY o.name LIMIT p_most) l
    LEFT JOIN holds h ON h.name = l.name AND l.owner = '' AND h.ends > at ORDER BY l.name, h.seq;
  COMMIT;
END $$

-- hold checks, inside a transaction of the caller's, that nobody has been granted the
-- lock after the owner, who has not released it, and keeps it so until that
-- transaction ends. The lease can be renewed meanwhile. If another owner has the lock,
-- the transaction is undone, and nothing more can be written in it.
CREATE PROCEDURE @schema@.hold(p_name VARBINARY(1024), p_owner VARBINARY(256))
BEGIN
  DECLARE present VARBINARY(256);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; START TRANSACTION READ ONLY; RESIGNAL; END;
  SELECT owner INTO present FROM owners WHERE name = p_name LOCK IN SHARE MODE;
  IF present IS NULL OR present <> p_owner THEN
    IF EXISTS (SELECT 1 FROM locks WHERE name = p_name AND owner = '' AND ends > @clock@) THEN
      SIGNAL SQLSTATE 'LH005' SET MESSAGE_TEXT = 'only the lease of a mutex can be held in a transaction, and the lock is in use as another kind';
    END IF;
    SIGNAL SQLSTATE 'LH002' SET MESSAGE_TEXT = 'the lease of this owner is over, so this transaction cannot be committed';
  END IF;
  SELECT 1;
END $$

-- sweep forgets locks that have been free for a day and whose tokens are behind the
-- clock, with the places of their waiters, who are dead, and what has ended. It passes over
-- rows that are in use, and commits now and then.
CREATE PROCEDURE @schema@.sweep(p_most INT)
BEGIN
  DECLARE past BIGINT DEFAULT @clock@ - 86400000000; DECLARE n INT DEFAULT 0; DECLARE found BOOLEAN;
  DECLARE l_name VARBINARY(1024);
  DECLARE old CURSOR FOR SELECT l.name FROM locks l WHERE l.ends < past AND l.buried < past AND l.token < past
    AND NOT EXISTS (SELECT 1 FROM places p WHERE p.name = l.name AND p.ends >= past) LIMIT p_most;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  BEGIN
    DECLARE EXIT HANDLER FOR NOT FOUND BEGIN END;
    OPEN old;
    LOOP
      FETCH old INTO l_name;
      IF n % 100 = 0 THEN CALL begin_step(); END IF;
      SET n = n + 1;
      SELECT COUNT(*) INTO found FROM owners WHERE name = l_name FOR UPDATE SKIP LOCKED;
      IF found THEN
        DELETE FROM locks WHERE name = l_name AND ends < past AND buried < past AND token < past
          AND NOT EXISTS (SELECT 1 FROM places p WHERE p.name = l_name AND p.ends >= past);
        IF ROW_COUNT() = 1 THEN
          DELETE FROM owners WHERE name = l_name;
          DELETE FROM places WHERE name = l_name;
          DELETE FROM holds WHERE name = l_name;
          DELETE FROM waits WHERE name = l_name;
        END IF;
      END IF;
    END LOOP;
  END;
  CALL begin_step();
  DELETE FROM tombs WHERE ends < past LIMIT p_most;
  DELETE FROM breaks WHERE ends < @clock@ LIMIT p_most;
  COMMIT;
END $$

-- longest_ttl records p_ttl if it is the longest TTL, and returns the longest.
CREATE PROCEDURE @schema@.longest_ttl(p_ttl BIGINT)
BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  COMMIT;
  IF p_ttl > 0 THEN UPDATE meta SET longest = GREATEST(longest, p_ttl); END IF;
  COMMIT;
  SELECT longest FROM meta;
  COMMIT;
END $$

-- server reports the version of the tables, the replicas that its definer may see, and
-- the server's clock.
CREATE PROCEDURE @schema@.server()
BEGIN
  DECLARE replicas INT;
  COMMIT;
  -- In MySQL, this table of information_schema cannot be read while the statement of any session is not valid UTF-8.
  /*!80022 IF @@GLOBAL.performance_schema THEN SELECT COUNT(*) INTO replicas FROM performance_schema.processlist p WHERE p.COMMAND LIKE 'Binlog Dump%'; ELSE */
  SELECT COUNT(*) INTO replicas FROM information_schema.PROCESSLIST p WHERE p.COMMAND LIKE 'Binlog Dump%';
  /*!80022 END IF; */
  SELECT version, oldest, replicas, @clock@ FROM meta;
  COMMIT;
END $$

DELIMITER ;
