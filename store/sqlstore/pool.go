package sqlstore

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"
)

// Limits of a pool that the store has opened.
const (
	// atOnce is how many calls a store makes at once. More would not be answered
	// sooner, and each takes a process of the server.
	atOnce = 32
	// idleFor is how long an idle connection is kept.
	idleFor = time.Minute
	// contendedFor is how long a call waits for other calls before it goes on regardless:
	// these may themselves wait for a transaction that relies on a lease (see Hold).
	contendedFor = time.Second
	// manyCalls is how many calls it takes to show that a process is not there for
	// one lock only.
	manyCalls = 16
)

// pool is the database handle of a store. Once sessions are known to last, its connections
// keep prepared statements. A store finds that out before it waits, and after many calls.
type pool struct {
	own bool // the store opened db and closes it
	db  *sql.DB
	// mayPrepare is set if the driver keeps a prepared statement with its connection and
	// knows it by its text.
	mayPrepare bool
	slots      chan struct{}
	calls      atomic.Int64
	decided    atomic.Bool // whether to prepare statements
	prepares   atomic.Bool
}

func newPool(db *sql.DB, own bool) *pool {
	p := &pool{own: own, db: db, slots: make(chan struct{}, atOnce)}
	if own {
		keepIdle(db)
	}
	return p
}

// keepIdle lets a handle keep the connections that a busy store uses: closing and
// opening them costs more.
func keepIdle(db *sql.DB) {
	db.SetMaxIdleConns(atOnce + DefaultConnections)
	db.SetConnMaxIdleTime(idleFor)
}

// conn returns a connection.
func (p *pool) conn(ctx context.Context) (*sql.Conn, error) { return p.db.Conn(ctx) }

// enter waits while too many calls are under way. The caller calls leave when its call
// has ended.
func (p *pool) enter(ctx context.Context) (leave func()) {
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }
	default:
	}
	timer := time.NewTimer(contendedFor)
	defer timer.Stop()
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// due counts a call, and reports whether it is time to decide whether to prepare
// statements.
func (p *pool) due() bool {
	return p.mayPrepare && !p.decided.Load() && p.calls.Add(1)%manyCalls == 0
}

// prepare makes the server prepare the calls, unless that is decided already. Sessions are
// known to last.
func (p *pool) prepare() {
	if p.mayPrepare && !p.decided.Swap(true) {
		p.prepares.Store(true)
	}
}

// revert ends that for ever, and closes the idle connections, which may have prepared
// statements. A pooler sends statements to sessions that have not prepared them.
func (p *pool) revert() {
	if p.prepares.Swap(false) {
		p.db.SetMaxIdleConns(-1)
		keepIdle(p.db)
	}
}

func (p *pool) close() error {
	if !p.own {
		return nil
	}
	return p.db.Close()
}
