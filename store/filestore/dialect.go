package filestore

import (
	"context"
	"database/sql"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Dialect is what an SQL engine does in its own way. SQLite makes one.
type Dialect struct {
	engine string // for Caps
	reach  string // for Caps
	clock  string // for Caps
	sql    statements

	// now reads the clock that counts TTLs. It runs in the transaction of the
	// step, after whatever keeps other steps of the same lock out: a reading
	// taken earlier could be older than what another step has written since.
	now func(ctx context.Context, tx *sql.Tx) (clock.Instant, error)
	// resolution is how far a reading of now can be behind the time. TTLs are
	// made longer by it, or the shortest could end before their holder stops
	// to trust them.
	resolution time.Duration
	// epoch names the life of the clock. A file's clock starts anew with every
	// boot, and leases of another epoch are void; a server's never does.
	epoch func() (string, error)
	// wall is the wall clock. Tokens are at least its microseconds, so that they
	// go on rising when the tables are lost or an older copy is put in their place.
	wall func() time.Time

	// oneWriter: the engine has no use for two writing transactions at once.
	// They queue in Go, where waiting costs nothing and has an order.
	oneWriter bool
	// durably runs fn in a transaction that is on disk when it returns,
	// however other transactions are committed.
	durably func(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error
	// again says whether err came of others being in the way, so that the
	// transaction certainly had no effect and may be run once more.
	again func(err error) bool
	// explain puts err in words a user can act on.
	explain func(err error) (store.Outcome, error)
}

// statements are the SQL of a dialect. Names of locks are bytes, not text:
// text has collations, and forbids some bytes.
type statements struct {
	create  []string // makes the tables, unless they are there
	found   string   // (schema, origin, epoch, ceiling): the one row of the meta table
	meta    string   // -> schema, origin, epoch
	epoch   string   // (epoch, floor, step): a new epoch: tokens go on at the ceiling
	clear   string   // forgets all locks
	draw    string   // (n, floor) -> the last of the next n tokens; no row when the range ends before it
	reserve string   // (n, floor, step): a new range after the next n tokens, if the range ends before those
	get     string   // (name) -> schema, origin, epoch, record or null
	put     string   // (name, record, ends)
	drop    string   // (name)
	sweep   string   // (now): drops what ended
	list    string   // (from, to, now) -> name, record: in order of the name
}
