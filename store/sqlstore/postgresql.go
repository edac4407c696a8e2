package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// postgresql is the engine of PostgreSQL.
type postgresql struct{}

func (postgresql) name() string { return "PostgreSQL" }

func (postgresql) id() string { return "postgresql" }

// pgNow is the server's clock, in microseconds.
const pgNow = "(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000)::bigint"

// texts implements engine. Names are qualified, so that nothing in the search path matters, and
// bytes travel in hexadecimal, which no setting changes. A step that changes the holder changes
// a column of a unique index, and so conflicts with FOR KEY SHARE; the others do not.
func (postgresql) texts(schema string) texts {
	t := schema + ".records"
	row := "k, pg_catalog.encode(v, 'hex'), version, idle, written, " + pgNow + ", pg_catalog.pg_is_in_recovery()"
	return texts{
		read: "SELECT " + row + " FROM " + t + " WHERE k = ? OR k = ''",
		insert: "INSERT INTO " + t + " (k, version, v, idle, holder, written) SELECT ?::text, ?::bigint, ?::bytea, ?::boolean, ?::text, " + pgNow +
			" FROM " + t + " WHERE k = '' AND version = ?::bigint ON CONFLICT DO NOTHING",
		update: "UPDATE " + t + " SET version = ?::bigint, v = ?::bytea, idle = ?::boolean, holder = ?::text, written = " + pgNow +
			" WHERE k = ?::text AND version = ?::bigint",
		list:   "SELECT " + row + " FROM " + t + " WHERE k > ?::text ORDER BY k LIMIT ?::bigint",
		remove: "DELETE FROM " + t + " WHERE k = ?::text AND version = ?::bigint AND idle AND written < " + pgNow + " - ?::bigint",
		raise:  "UPDATE " + t + " SET version = GREATEST(version, ?::bigint) + 1 WHERE k = ''",
		// A lease that is over is a division by zero, which ends the transaction.
		hold: "SELECT pg_catalog.txid_current() / pg_catalog.count(*) FROM (SELECT 1 FROM " + t + " WHERE k = ?::text AND holder = ?::text FOR KEY SHARE) held",
	}
}

// bind implements engine: it numbers the marks.
func (postgresql) bind(text string, args []any) (string, []any) {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(text, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String(), args
}

// script implements engine.
func (postgresql) script(schema string) []string {
	t := schema + ".records"
	return []string{
		"SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('leasehold schema', 0))",
		// IF NOT EXISTS would need the right to create a schema also if it exists.
		"DO $$ BEGIN IF pg_catalog.to_regnamespace('" + schema + "') IS NULL THEN CREATE SCHEMA " + schema + "; END IF; END $$",
		"CREATE TABLE IF NOT EXISTS " + t + ` (
  k text COLLATE "C" PRIMARY KEY,       -- the name of the lock in hexadecimal; empty: the floor
  version bigint NOT NULL,              -- another one with each step
  holder text COLLATE "C" NOT NULL,     -- the owner of the lease, if the lock is a mutex
  idle boolean NOT NULL,                -- nobody uses the lock
  written bigint NOT NULL,              -- when, in microseconds
  v bytea NOT NULL                      -- the record
) WITH (fillfactor = 50)`,
		"CREATE UNIQUE INDEX IF NOT EXISTS records_holder ON " + t + " (k, holder)",
		"INSERT INTO " + t + " (k, version, holder, idle, written, v) SELECT '', " + pgNow + " / 2048, '', false, 0, '' ON CONFLICT DO NOTHING",
	}
}

func (postgresql) grants(schema, role string) ([]string, error) {
	role = `"` + strings.ReplaceAll(role, `"`, `""`) + `"`
	return []string{
		fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", schema, role),
		fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s.records TO %s", schema, role),
	}, nil
}

func (postgresql) over(err error) bool { return sqlState(err) == "22012" }

// inTransaction implements engine: mark is the number of the transaction.
func (postgresql) inTransaction(ctx context.Context, tx Tx, mark int64) (bool, error) {
	var now *int64
	err := tx.QueryRowContext(ctx, "SELECT pg_catalog.txid_current_if_assigned()").Scan(&now)
	return now != nil && *now == mark, err
}
