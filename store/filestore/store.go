package filestore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a Store. The zero value and nil are good defaults.
type Options struct {
	// MaxTTL is the longest TTL that the store accepts. Zero means no limit.
	MaxTTL time.Duration
	// Timeout bounds every call, including the time it waits for other processes
	// to finish writing. Zero means 5 s.
	Timeout time.Duration
	// Shared lets OpenFile accept a file that another user owns or can write, or
	// that another user can replace in its directory. Those users can take and
	// end every lock in it. To share a file, create it empty, with the rights it
	// should have, in a directory where the same users may create files. The
	// files that SQLite adds beside it get the same rights.
	Shared bool
	// MakeDir makes OpenFile create the directory of the file, and its parents,
	// if they are missing. Without it a missing directory is an error, because a
	// mistyped path would give locks that exclude nobody.
	MakeDir bool
	// Logger logs clean-up that failed. Nil means no logging.
	Logger *slog.Logger
}

const defaultTimeout = 5 * time.Second

// Store is a store.Waiter in an SQL database. Its methods are safe for concurrent
// use.
//
// An error that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node. Its outcome is store.TimedOut if other
// processes kept the database busy for Options.Timeout, so that trying later can
// help. It is store.Refused if a person has to mend it.
type Store struct {
	database
	node   string // the database, in errors
	log    *slog.Logger
	maxTTL time.Duration
	// closed is called when the last connection to the database is closed.
	closed func()

	gate   *gate.Gate
	bells  bells
	broken audience.Audience
	push   *pusher
	// rejoined are the places that no Wait has claimed yet.
	rejoined unclaimed.Places[reservedPlace]
}

var _ store.Waiter = (*Store)(nil)

// New returns a store that uses the database handle db. It creates the tables it
// needs. It blocks until that is done, ctx ends or Options.Timeout passes. The
// caller keeps db and closes it after the store. o may be nil.
//
// The caller also takes care of the files of the database. New does nothing of
// what OpenFile does for them: see there which users may have access, and what
// must not happen to the files.
func New(ctx context.Context, db *sql.DB, d Dialect, o *Options) (*Store, error) {
	if db == nil || d.again == nil {
		return nil, fmt.Errorf("%w: New needs a database handle and a dialect, such as SQLite()", store.ErrInvalid)
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
		return nil, fmt.Errorf("%w: MaxTTL %v, Timeout %v: neither may be negative", store.ErrInvalid, o.MaxTTL, o.Timeout)
	}
	s := &Store{
		database: database{
			db:     db,
			d:      d,
			limit:  cmp.Or(o.Timeout, defaultTimeout),
			intact: func() error { return nil },
			single: func() error { return nil },
		},
		node:   d.engine,
		log:    cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		maxTTL: o.MaxTTL,
		closed: func() {},
		push:   &pusher{},
		gate:   gate.New(),
	}
	if d.oneWriter {
		s.askers, s.writers = make(quota, 1), make(quota, 1)
	}
	return s, nil
}

// Caps implements store.Store.
func (s *Store) Caps() store.Caps {
	return store.Caps{
		Breaks: true,
		Engine: s.d.engine,
		Nodes:  1,
		Quorum: 1,
		MaxTTL: s.maxTTL,
		Reach:  s.d.reach,
		Clock:  s.d.clock,
		Kinds:  true,
		Class:  store.CrashSafe,

		Rejoins: true,
	}
}

// Close implements store.Store. It waits for pending calls and clean-up, for at
// most Options.Timeout. Pending Waits leave the queue.
func (s *Store) Close() error {
	if s.gate.Enter(nil) != nil {
		return nil // it is closed already
	}
	idle, first := s.gate.Close()
	if !first { // another Close was faster
		s.gate.Leave()
		return nil
	}
	for _, p := range s.rejoined.Close() {
		p.abandon(context.Background(), s)
	}
	s.gate.Leave()
	defer s.push.close()
	timer := time.NewTimer(s.limit)
	defer timer.Stop()
	select {
	case <-idle:
		defer s.closed()
	case <-timer.C:
		go func() { // pending calls still have connections
			<-idle
			s.closed()
		}()
	}
	if err := s.disconnect(); err != nil {
		return fmt.Errorf("close %s: %w", s.node, err)
	}
	return nil
}
