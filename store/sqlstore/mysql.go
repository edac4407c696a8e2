package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// mysql is the engine of MySQL and MariaDB.
type mysql struct{}

func (mysql) name() string { return "MySQL" }

func (mysql) id() string { return "mysql" }

// myNow is the server's clock, in microseconds.
const myNow = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

// texts implements engine. A LIMIT overrules sql_select_limit. A replica that accepts writes of
// some users gets none: read_only is looked at in each statement. A step that changes the holder
// changes a record of the index by_holder, which hold locks, and no other step does.
func (mysql) texts(schema string) texts {
	t := schema + ".records"
	const row = "k, v, version, idle, written, " + myNow + ", " + readOnly
	return texts{
		read:   "SELECT " + row + " FROM " + t + " WHERE k IN (?, '') LIMIT 2",
		insert: "INSERT INTO " + t + " (k, version, v, idle, holder, written) SELECT ?, ?, ?, ?, ?, " + myNow + " FROM " + t + " WHERE k = '' AND version = ? AND NOT " + readOnly,
		update: "UPDATE " + t + " SET version = ?, v = ?, idle = ?, holder = ?, written = " + myNow + " WHERE k = ? AND version = ? AND NOT " + readOnly,
		list:   "SELECT " + row + " FROM " + t + " WHERE k > ? ORDER BY k LIMIT ?",
		remove: "DELETE FROM " + t + " WHERE k = ? AND version = ? AND idle AND written < " + myNow + " - ? AND NOT " + readOnly,
		raise:  "UPDATE " + t + " SET version = GREATEST(version, ?) + 1 WHERE k = '' AND NOT " + readOnly,
		// A lease that is over is a number out of range.
		hold: "SELECT EXP(1000 * (1 - COUNT(*))) FROM " + t + " FORCE INDEX (by_holder) WHERE k = ? AND holder = ? LIMIT 1 LOCK IN SHARE MODE",
	}
}

// readOnly is true on a replica. MariaDB 12 has more values than two.
const readOnly = "(CONCAT(@@GLOBAL.read_only) NOT IN ('0', 'OFF'))"

// bind implements engine: it writes the arguments into the text. Arguments beside the text would
// cost a round trip to prepare it, or depend on how the driver is set.
func (mysql) bind(text string, args []any) (string, []any) {
	b := make([]byte, 0, len(text)+256)
	for part := range strings.SplitSeq(text, "?") {
		b = append(b, part...)
		if len(args) > 0 {
			b = appendLiteral(b, args[0])
			args = args[1:]
		}
	}
	return string(b), nil
}

// appendLiteral appends a literal that means the same in every mode and character set
// of a session.
func appendLiteral(text []byte, arg any) []byte {
	switch v := arg.(type) {
	case []byte:
		text = append(text, "x'"...)
		return append(hex.AppendEncode(text, v), '\'')
	case string:
		return appendLiteral(text, []byte(v))
	case int64:
		return strconv.AppendInt(text, v, 10)
	case bool:
		return strconv.AppendBool(text, v)
	}
	panic(fmt.Sprintf("sqlstore: no statement has arguments of type %T", arg))
}

// script implements engine.
func (mysql) script(schema string) []string {
	t := schema + ".records"
	return []string{
		"CREATE DATABASE IF NOT EXISTS " + schema,
		"CREATE TABLE IF NOT EXISTS " + t + ` (
  k VARBINARY(210) NOT NULL PRIMARY KEY, -- the name of the lock in hexadecimal; empty: the floor
  version BIGINT NOT NULL,               -- another one with each step
  holder VARBINARY(256) NOT NULL,        -- the owner of the lease, if the lock is a mutex
  idle BOOLEAN NOT NULL,                 -- nobody uses the lock
  written BIGINT NOT NULL,               -- when, in microseconds
  v LONGBLOB NOT NULL,                   -- the record
  UNIQUE INDEX by_holder (k, holder)
) ENGINE = InnoDB`,
		"INSERT IGNORE INTO " + t + " (k, version, holder, idle, written, v) VALUES ('', " + myNow + " DIV 2048, '', FALSE, 0, '')",
	}
}

// grants implements engine. A role is USER or USER@HOST.
func (mysql) grants(schema, role string) ([]string, error) {
	user, host := role, "%"
	if i := strings.LastIndexByte(role, '@'); i > 0 {
		user, host = role[:i], role[i+1:]
	}
	if strings.ContainsAny(role, "'\\\r\n") {
		return nil, fmt.Errorf("%w: %q: a user whose name contains a quotation mark, a backslash or a newline cannot be granted rights", store.ErrInvalid, role)
	}
	return []string{fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.records TO '%s'@'%s'", schema, user, host)}, nil
}

func (mysql) over(err error) bool { return errorNumber(err) == "1690" }

// inTransaction implements engine. Outside a transaction, a savepoint is forgotten at once.
func (mysql) inTransaction(ctx context.Context, tx Tx, _ int64) (bool, error) {
	for _, statement := range []string{"SAVEPOINT leasehold_hold", "RELEASE SAVEPOINT leasehold_hold"} {
		err := tx.QueryRowContext(ctx, statement).Scan(new(string))
		switch {
		case errorNumber(err) == "1305":
			return false, nil
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return false, err
		}
	}
	return true, nil
}
