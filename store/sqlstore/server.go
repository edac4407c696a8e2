package sqlstore

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Server is what a database server says about itself.
type Server struct {
	// Version is that of the lock tables, and Oldest the oldest program that can
	// use them.
	Version, Oldest int
	// ServerVersion is such as 150018 for PostgreSQL 15.18.
	ServerVersion int
	// InRecovery is set if the server is a standby. ReadOnly is set if transactions can
	// only read, there or because the role has default_transaction_read_only.
	InRecovery, ReadOnly bool
	// Settings of the server; see its manual.
	Fsync, SynchronousCommit, FullPageWrites, SynchronousStandbyNames string
	// Standbys is the number of servers that copy this one and could take its place.
	Standbys int
	// Isolation is the level at which transactions start.
	Isolation string
	// Pooled reports that a pooler gives each transaction to any of its sessions, so
	// that waiters poll.
	Pooled bool
}

// Class returns the strongest guarantee that the server's settings allow. Commits
// that are not on disk by default do not matter: the store asks for it where needed.
func (s *Server) Class() store.Class {
	if s.why() == "" {
		return store.CrashSafe
	}
	return store.Efficiency
}

// why returns what keeps the server from being crash-safe, or an empty string.
func (s *Server) why() string {
	switch {
	case s.Fsync != "on":
		return "fsync is " + s.Fsync + ", so a crash can lose grants"
	case s.FullPageWrites != "on":
		return "full_page_writes is " + s.FullPageWrites + ", so a crash can damage the tables"
	case s.Standbys > 0 && strings.TrimSpace(s.SynchronousStandbyNames) == "":
		return "its standbys are asynchronous, so a failover can lose grants"
	case s.Standbys > 0 && s.SynchronousCommit == "local":
		return "synchronous_commit is local, so a failover can lose grants"
	}
	return ""
}

// Examination is what Examine found out.
type Examination struct {
	Server
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
	if e.Unusable = s.open(ctx); e.Unusable == nil {
		s.seats.probe(ctx)
	}
	if is := s.server.Load(); is != nil {
		e.Server, e.Known, e.Why = *is, true, is.why()
		e.Pooled = s.seats.pooled.Load()
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
	var is Server
	sent := s.clock.Now()
	var at, session int64
	_, err := s.call(ctx, s.calls.server, func(r *sql.Rows) error {
		return r.Scan(&is.Version, &is.Oldest, &is.ServerVersion, &is.InRecovery, &is.Fsync, &is.SynchronousCommit,
			&is.FullPageWrites, &is.SynchronousStandbyNames, &is.Standbys, &is.Isolation, &at, &session, &is.ReadOnly)
	})
	if err != nil {
		return Server{}, s.failed(ctx, "examine", "", false, err)
	}
	_ = s.reading(sent, at) // the next grant tells of a jump
	s.asked.Store(int64(s.clock.Now()))
	s.server.Store(&is)
	return is, nil
}

// examineAgain asks the server about itself in the background, once a minute: its
// standbys come and go. The caller is counted at the gate.
func (s *Store) examineAgain(ctx context.Context) {
	const every = int64(time.Minute)
	now, last := int64(s.clock.Now()), s.asked.Load()
	if now-last < every || !s.asked.CompareAndSwap(last, now) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	s.gate.stay()
	go func() {
		defer s.gate.leave()
		if _, err := s.examine(ctx); err != nil {
			s.o.Logger.Warn("cannot examine the database server", "err", err)
		}
	}()
}
