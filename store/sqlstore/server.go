package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found out.
type Examination struct {
	Server
	// Node is the server, as errors name it.
	Node string
	// Unusable is why no lock can be acquired, or nil.
	Unusable error
	// Known reports whether the server has answered, so that Server is set.
	Known bool
	// Why is what keeps the server from being crash-safe. It is empty if it is.
	Why string
	// Took is the time of an acquire and a release, if they were tried.
	Took time.Duration
}

// Examine checks whether a store can be opened and a lock acquired in it, and asks
// the server about itself. It tries this on a name of its own. It blocks as New and
// Acquire do. o may be nil.
func Examine(ctx context.Context, db *sql.DB, d Dialect, o *Options) Examination {
	var e Examination
	s, err := newStore(newPool(db, false), d, o)
	if err != nil {
		e.Unusable = err
		return e
	}
	defer s.Close()
	e.Node = s.node
	if e.Unusable = s.open(ctx); e.Unusable == nil {
		s.seats.probe(ctx)
	}
	if is := s.server.Load(); is != nil {
		e.Server, e.Known, e.Why = *is, true, is.Settings.why()
		e.Polled = s.seats.why()
	}
	if e.Unusable != nil {
		return e
	}
	l := store.Lease{Name: "doctor/" + store.NewOwner(), Owner: store.NewOwner(), TTL: s.o.Timeout}
	sent := s.clock.Now()
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		e.Unusable = err
		return e
	}
	e.Unusable = s.Release(ctx, store.ReleaseRequest{Lease: l})
	e.Took = s.clock.Now().Sub(sent)
	return e
}

// examine asks the server about itself.
func (s *Store) examine(ctx context.Context) (Server, error) {
	var sent clock.Instant
	is, at, err := s.engine.examine(s.o.Schema, func(q statement, each func(row) error) error {
		sent = s.clock.Now()
		_, err := s.call(ctx, q, each)
		return err
	})
	if err != nil {
		return Server{}, s.failed(ctx, "examine", "", false, err)
	}
	_ = s.reading(sent, at) // the next grant tells of a jump
	s.asked.Store(int64(s.clock.Now()))
	s.server.Store(&is)
	if is.Version < SchemaVersion {
		return is, nil
	}
	return is, s.recordTTL(ctx, "", 0)
}

// examineAgain asks the server about itself in the background, once a minute: its
// standbys come and go. After a jump of its clock it does so at once. The caller is counted at
// the gate.
func (s *Store) examineAgain(ctx context.Context) {
	now, last, jumped := int64(s.clock.Now()), s.asked.Load(), s.jumped.Load()
	every := int64(time.Minute)
	switch {
	case last < jumped:
		every = 0
	case s.longest.Unread(clock.Instant(jumped)):
		every = int64(time.Second)
	}
	if now-last < every || !s.asked.CompareAndSwap(last, now) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		if _, err := s.examine(ctx); err != nil {
			s.o.Logger.Warn("cannot examine the database server", "err", err)
		}
	}()
}
