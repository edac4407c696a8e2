package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/longest"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// Store is a store.Rejoiner in a database. Its methods are safe for concurrent use.
//
// An error that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node.
type Store struct {
	caller
	node     string
	rejoined unclaimed.Places[*reservedPlace]
	clock    clock.Clock
	clocks   *driver.Clocks
	longest  *longest.TTL
	jumped   atomic.Int64 // when the server's clock was last seen to have jumped ahead

	server atomic.Pointer[Server]
	asked  atomic.Int64 // when the server was last asked about itself
}

var _ store.Rejoiner = (*Store)(nil)

// Open returns a store that connects with a driver, which the caller has imported:
// "pgx" or "postgres" for PostgreSQL, "mysql" for MySQL and MariaDB. It blocks until the
// procedures have answered, ctx ends or Options.Timeout passes. It does not install them:
// see Install. o may be nil.
func Open(ctx context.Context, d Dialect, driverName, dsn string, o *Options) (*Store, error) {
	if _, err := d.engine(); err != nil {
		return nil, err
	}
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("open lock tables in %v: %w", d, err)
	}
	s, err := openOn(ctx, newPool(db, true), d, o)
	if err != nil {
		db.Close()
	}
	return s, err
}

// New is Open for a database handle of the caller's, who closes it after the store.
// The store works with any setting of the handle. It is slow if MaxIdleConns is
// smaller than the number of goroutines that use locks.
func New(ctx context.Context, db *sql.DB, d Dialect, o *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: New needs a database handle", store.ErrInvalid)
	}
	return openOn(ctx, newPool(db, false), d, o)
}

func openOn(ctx context.Context, p *pool, d Dialect, o *Options) (*Store, error) {
	s, err := newStore(p, d, o)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("open lock tables in %s: %w", s.node, err)
	}
	return s, nil
}

func newStore(p *pool, d Dialect, o *Options) (*Store, error) {
	e, err := d.engine()
	if err != nil {
		return nil, err
	}
	checked, err := o.checked()
	if err != nil {
		return nil, err
	}
	s := &Store{
		caller: caller{pool: p, engine: e, o: checked, calls: callsIn(e, checked.Schema), gate: gate.New()},
		node:   e.name(),
		clock:  clock.System(),

		longest: longest.New(checked.MaxTTL),
	}
	s.clocks = driver.NewClocks(1, s.leasesLast, driver.WallAhead(s.clock), checked.Logger)
	s.seats, s.batches = newSeats(&s.caller), newBatches(&s.caller)
	return s, nil
}

// open checks that the procedures are there and of a version that this package can
// use.
func (s *Store) open(ctx context.Context) error {
	is, err := s.examine(ctx)
	if err != nil {
		return err
	}
	if is.Oldest > SchemaVersion || is.Version < SchemaVersion {
		return versionError(is)
	}
	if is.ReadOnly != "" {
		return errors.New(is.ReadOnly)
	}
	if why := is.Settings.polled(); why != "" {
		s.seats.poll(why)
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	s.seats.probeDirect(ctx)
	return nil
}

func versionError(is Server) error {
	if is.Version < SchemaVersion {
		return fmt.Errorf("the lock tables have version %d, and this program needs version %d: run \"leasehold schema\" of the same version as this program", is.Version, SchemaVersion)
	}
	return fmt.Errorf("the lock tables have version %d, for programs of version %d or later, and this program knows version %d: upgrade it", is.Version, is.Oldest, SchemaVersion)
}

// Caps implements store.Store.
func (s *Store) Caps() store.Caps {
	return store.Caps{
		Breaks: true,
		Engine: s.engine.id(),
		Nodes:  1,
		Quorum: 1,
		MaxTTL: s.o.MaxTTL,
		Reach:  "network",
		Clock:  "the database server's clock",
		Kinds:  true,
		Class:  s.server.Load().Class(),

		Rejoins: true,
	}
}

// Close implements store.Store. It waits for pending calls and clean-up, for at most
// Options.Timeout. Pending Waits leave the queue.
func (s *Store) Close() error {
	idle, first := s.gate.Close()
	if !first {
		return nil
	}
	timer := time.NewTimer(s.o.Timeout)
	defer timer.Stop()
	for _, p := range s.rejoined.Close() {
		p.abandon(context.Background(), s)
	}
	select {
	case <-idle:
	case <-timer.C:
	}
	s.seats.close()
	if err := s.pool.close(); err != nil {
		return fmt.Errorf("close %s: %w", s.node, err)
	}
	return nil
}

// reading takes a reading of the server's clock, in microseconds, from an answer to
// a request that was sent at sent. The error says why grants do not count at present.
func (s *Store) reading(sent clock.Instant, at int64) error {
	jump := s.clocks.Observe(0, s.node, sent, s.clock.Now(), clock.Instant(at)*1000)
	if jump == nil {
		return nil
	}
	s.examineAgain(context.Background()) // waiters, too, have to learn for how long
	n := jump.Outcome()
	n.Node = s.node
	return &store.QuorumError{Op: "acquire", Need: 1, Nodes: []store.NodeOutcome{n}}
}

// require returns an error if the store cannot give the class.
func (s *Store) require(c store.Class) error {
	if have := s.Caps().Class; c > have {
		return fmt.Errorf("%w: %v is required, and %s gives %v: %s", store.ErrUnsupported, c, s.node, have, s.server.Load().Settings.why())
	}
	return nil
}

// durable reports whether what a lease of the class needs has to be on disk before
// the server answers.
func durable(c store.Class) bool { return c > store.Efficiency }

// failed turns err into the error that the caller of a method gets.
func (s *Store) failed(ctx context.Context, op, name string, maybe bool, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, store.ErrClosed) {
			return store.ErrClosed
		}
		if name == "" {
			return fmt.Errorf("%s in %s: %w", op, s.node, ctx.Err())
		}
		return fmt.Errorf("%s %q in %s: %w", op, name, s.node, ctx.Err())
	}
	n := store.NodeOutcome{Node: s.node}
	var over *endedError
	if errors.As(err, &over) {
		fault := s.engine.fault(over.last)
		if n.Outcome = store.TimedOut; fault.again {
			n.Outcome = fault.outcome // nothing was done
		}
		missing := "success"
		if over.unconnected {
			missing = "connection"
		}
		n.Err = fmt.Errorf("no %s within %v: %w", missing, s.o.Timeout, fault.explain(over.last))
	} else {
		fault := s.engine.fault(err)
		n.Outcome, n.Err = fault.outcome, fault.explain(err)
	}
	if maybe && n.Outcome == store.Refused {
		n.Outcome = store.Unreachable // the outcome for errors that leave the result unknown
	}
	return &store.QuorumError{Op: op, Name: name, Need: 1, Nodes: []store.NodeOutcome{n}}
}
