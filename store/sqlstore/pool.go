package sqlstore

import (
	"context"
	"database/sql"
	"sync"
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

// pool is the database handles of a store: the plain one and, once sessions are known to
// last, one whose connections keep prepared statements. A store finds that out before it
// waits, and after many calls.
type pool struct {
	own   bool // the store opened plain and closes it
	plain *sql.DB
	// openPrepared opens the other handle. It is nil if there is none.
	openPrepared func() (*sql.DB, error)
	slots        chan struct{}
	calls        atomic.Int64
	decided      atomic.Bool // whether to prepare statements

	mu       sync.Mutex
	prepared *sql.DB
	// current is plain or prepared.
	current atomic.Pointer[sql.DB]
	closed  bool
}

func newPool(db *sql.DB, own bool) *pool {
	p := &pool{own: own, plain: db, slots: make(chan struct{}, atOnce)}
	if own {
		keepIdle(db)
	}
	p.current.Store(db)
	return p
}

// keepIdle lets a handle keep the connections that a busy store uses: closing and
// opening them costs more.
func keepIdle(db *sql.DB) {
	db.SetMaxIdleConns(atOnce + DefaultConnections)
	db.SetConnMaxIdleTime(idleFor)
}

// conn returns a connection.
func (p *pool) conn(ctx context.Context) (*sql.Conn, error) { return p.current.Load().Conn(ctx) }

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
	return p.openPrepared != nil && !p.decided.Load() && p.calls.Add(1)%manyCalls == 0
}

// prepare makes new connections keep prepared statements.
func (p *pool) prepare() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.prepared != nil {
		return nil
	}
	db, err := p.openPrepared()
	if err != nil {
		return err
	}
	keepIdle(db)
	p.prepared = db
	p.current.Store(db)
	p.plain.SetMaxIdleConns(-1)
	return nil
}

// revert makes the plain handle current again, for ever. A pooler sends statements to
// sessions that have not prepared them.
func (p *pool) revert() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.current.Load() == p.plain {
		return
	}
	p.current.Store(p.plain)
	keepIdle(p.plain)
	p.prepared.SetMaxIdleConns(-1)
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var err error
	if p.prepared != nil {
		err = p.prepared.Close()
	}
	if p.own {
		if e := p.plain.Close(); err == nil {
			err = e
		}
	}
	return err
}
