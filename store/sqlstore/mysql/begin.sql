-- Leasehold's tables and procedures in MySQL or MariaDB, version @version@.
-- It can be run again, also by a migration tool that knows DELIMITER, in one session:
-- it changes what is older, leaves what is there, and refuses to replace a newer
-- version. The database @schema@ is for locks only.

DO GET_LOCK('leasehold schema', 60);

SET @leasehold_sql_mode = @@SESSION.sql_mode, SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION';

CREATE DATABASE IF NOT EXISTS @schema@;

CREATE TABLE IF NOT EXISTS @schema@.meta (
  one TINYINT NOT NULL DEFAULT 1 PRIMARY KEY,
  -- version is that of the tables and procedures. Programs that know oldest or a
  -- later version can use them.
  version INT NOT NULL,
  oldest INT NOT NULL,
  longest BIGINT NOT NULL DEFAULT 0 -- the longest TTL above a minute that was asked for, in microseconds
) ENGINE = InnoDB;

DELIMITER $$

CREATE PROCEDURE @schema@.begin_install() SQL SECURITY INVOKER
BEGIN
  IF NOT IS_USED_LOCK('leasehold schema') <=> CONNECTION_ID() THEN
    SIGNAL SQLSTATE 'LH003' SET MESSAGE_TEXT = 'another session is installing the lock tables: try again';
  END IF;
  IF EXISTS (SELECT 1 FROM meta WHERE version > @version@) THEN
    SIGNAL SQLSTATE 'LH003' SET MESSAGE_TEXT = 'the lock tables are newer than version @version@ of this script: use the newer version of the program that installed them';
  END IF;
  IF EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '@schema@' AND TABLE_NAME = 'locks')
    AND NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '@schema@' AND TABLE_NAME = 'locks' AND COLUMN_NAME = 'lim') THEN
    ALTER TABLE locks ADD COLUMN lim BIGINT, ADD COLUMN shared BOOLEAN;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '@schema@' AND TABLE_NAME = 'meta' AND COLUMN_NAME = 'longest') THEN
    ALTER TABLE meta ADD COLUMN longest BIGINT NOT NULL DEFAULT 0;
  END IF;
END $$

DELIMITER ;

CALL @schema@.begin_install();
DROP PROCEDURE @schema@.begin_install;
