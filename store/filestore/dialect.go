package filestore

import (
	"context"
	"database/sql"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Dialect holds what differs between SQL engines. SQLite returns one.
type Dialect struct {
	engine string // for Caps
	reach  string // for Caps
	clock  string // for Caps
	sql    statements

	// now reads the clock that counts TTLs. It runs in the transaction of the
	// step, after the locks that keep other steps out are held. A reading taken
	// earlier could be older than what another step has written since.
	now func() (clock.Instant, error)
	// resolution is how far a reading of now can lag behind. TTLs are extended by
	// it; otherwise the shortest could end before their holder stops trusting
	// them.
	resolution time.Duration
	// epoch identifies the run of the clock. A file's clock starts anew with
	// every boot, and leases of another epoch are void. A server's epoch never
	// changes.
	epoch func() (string, error)
	// wall is the wall clock. Tokens are at least its microseconds, so that they
	// keep rising when the tables are lost or replaced by an older copy.
	wall func() time.Time

	// oneWriter is set if the engine allows one writing transaction at a time.
	// Writers then queue in Go, where waiting is cheap and fair.
	oneWriter bool
	// durably runs fn in a transaction that is on disk when durably returns,
	// however other transactions are committed.
	durably func(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error
	// again reports whether err means that another transaction was in the way, so
	// that this one certainly had no effect and may be run again.
	again func(err error) bool
	// explain puts err in words that a user can act on.
	explain func(err error) (store.Outcome, error)
}

// statements are the SQL of a dialect. Lock names are stored as bytes, because
// text has collations and forbids some bytes.
type statements struct {
	create  []string // makes the tables, unless they are there
	found   string   // (schema, origin, epoch, ceiling): the one row of the meta table
	meta    string   // -> schema, origin, epoch
	epoch   string   // (epoch, floor, step): a new epoch: tokens go on at the ceiling
	clear   string   // forgets all locks
	draw    string   // (token): a later last token
	reserve string   // (n, floor, step): a new range after the next n tokens, if the range ends before those
	get     string   // (name) -> schema, origin, epoch, last token, end of the range, record or null
	put     string   // (name, record, ends)
	drop    string   // (name)
	sweep   string   // (now): drops what ended
	list    string   // (from, to, now) -> name, record: in order of the name
}
