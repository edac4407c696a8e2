package filestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Options change how a Store works. The zero value, and nil, are good defaults.
type Options struct {
	// MaxTTL is the longest TTL that is accepted. Zero: any.
	MaxTTL time.Duration
	// Timeout bounds every call, the wait for other processes that are writing
	// included. Zero: 5 s.
	Timeout time.Duration
	// Shared lets OpenFile accept a file that another user owns or can write, or
	// that lies in a directory where another user can replace it. Those users can
	// take and end every lock in it. To share one, make
	// an empty file with the rights it is to have, in a directory where the
	// same users may create files: the two files beside it get the same rights.
	Shared bool
	// MakeDir has OpenFile make the directory of the file, and those above it,
	// where they are missing. Without it that is an error: a name that was
	// mistyped would give locks that exclude nobody.
	MakeDir bool
	// Logger is told of clean-up that did not succeed. Nil: nothing is logged.
	Logger *slog.Logger
}

const defaultTimeout = 5 * time.Second

// Store is a store.Waiter in an SQL database.
//
// Errors that are neither of the lock nor of the caller's context are
// *store.QuorumError with the one node there is. It counts as timed out when
// other processes kept the database busy for Options.Timeout, which waiting can
// mend, and as refused when a person has to mend it.
type Store struct {
	db    *sql.DB
	d     Dialect
	node  string // the database, in errors
	meta  metaRow
	log   *slog.Logger
	stmts stmts

	maxTTL, limit time.Duration
	// writers and readers are as many as may be at work at once; nil: any.
	writers, readers chan struct{}

	// own is set when the handle was opened here, and is closed here. Nothing
	// in it blocks for long then, and transactions are not interrupted: ctx
	// counts while they wait for their turn.
	own bool
	// intact says whether the database is still the one that was opened, and single
	// whether nobody can have another by another name: then nothing is granted.
	intact, single func() error
	// stays is a connection that nothing but Close uses.
	stays *sql.Conn
	// closed is called once no connection to the database is left.
	closed func()

	gate  gate
	bells bells
	push  *pusher
}

var _ store.Waiter = (*Store)(nil)

// New makes a store of a database handle, and the tables it needs unless they
// are there. It blocks until that is done, ctx has ended or Options.Timeout has
// passed. The handle stays the caller's, who closes it after the store. o may
// be nil.
//
// The caller also looks after the database's files. What OpenFile does for them is
// not done: see there who may have them, and what must not happen to them.
func New(ctx context.Context, db *sql.DB, d Dialect, o *Options) (*Store, error) {
	if db == nil || d.again == nil {
		return nil, fmt.Errorf("%w: a database handle and a dialect are needed, such as SQLite()", store.ErrInvalid)
	}
	s, err := newStore(db, d, o)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("open lock tables in %s: %w", s.node, err)
	}
	return s, nil
}

func newStore(db *sql.DB, d Dialect, o *Options) (*Store, error) {
	o = cmp.Or(o, &Options{})
	if o.MaxTTL < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("%w: MaxTTL %v, Timeout %v: neither can be negative", store.ErrInvalid, o.MaxTTL, o.Timeout)
	}
	s := &Store{
		db:     db,
		d:      d,
		node:   d.engine,
		log:    cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		maxTTL: o.MaxTTL,
		limit:  cmp.Or(o.Timeout, defaultTimeout),
		intact: func() error { return nil },
		single: func() error { return nil },
		closed: func() {},
		push:   &pusher{},
		gate:   gate{shut: make(chan struct{})},
	}
	if d.oneWriter {
		s.writers = make(chan struct{}, 1)
	}
	return s, nil
}

// Caps implements store.Store.
func (s *Store) Caps() store.Caps {
	return store.Caps{
		Engine: s.d.engine,
		Nodes:  1,
		Quorum: 1,
		MaxTTL: s.maxTTL,
		Reach:  s.d.reach,
		Clock:  s.d.clock,
		Class:  store.CrashSafe,
	}
}

// Close implements store.Store. It waits for calls and clean-up under way, for
// Options.Timeout at most. Those who wait for a lock leave the line.
func (s *Store) Close() error {
	idle, first := s.gate.close()
	if !first {
		return nil
	}
	defer s.push.close()
	timer := time.NewTimer(s.limit)
	defer timer.Stop()
	select {
	case <-idle:
		defer s.closed()
	case <-timer.C:
		go func() { // calls under way still have connections
			<-idle
			s.closed()
		}()
	}
	if err := s.disconnect(); err != nil {
		return fmt.Errorf("close %s: %w", s.node, err)
	}
	return nil
}

// disconnect ends what the store has under way with the database.
func (s *Store) disconnect() error {
	err := s.stmts.close()
	if s.stays != nil {
		err = errors.Join(err, s.stays.Close())
		s.stays = nil
	}
	if s.own {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// gate counts the calls under way and lets none in after it was closed.
type gate struct {
	mu     sync.Mutex
	calls  int
	closed bool
	shut   chan struct{} // closed when closed
	idle   chan struct{} // closed when closed and no call is left
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return store.ErrClosed
	}
	g.calls++
	return nil
}

// stay counts one more call, on behalf of one that is under way.
func (g *gate) stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if g.closed && g.calls == 0 {
		close(g.idle)
	}
}

// close returns what ends when the last call has; first is false if the gate
// was closed already.
func (g *gate) close() (idle <-chan struct{}, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return g.idle, false
	}
	g.closed, g.idle = true, make(chan struct{})
	close(g.shut)
	if g.calls == 0 {
		close(g.idle)
	}
	return g.idle, true
}
