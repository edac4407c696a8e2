// Package store keeps locks in an engine, such as Redis, a folder of files or memory.
// Open returns the Store that a URL names.
//
// A Store performs single atomic steps: acquire, renew, release, inspect, break. It can
// also queue for a lock until it is granted, and rejoin that queue with a release. No
// store renews a lease by itself or judges whether it is still valid: the client does
// both, in one place for all stores. The client never passes an absolute time to a
// store. TTLs are relative, and the engine counts them by its own clock.
//
// Each method has a request of its own, with only the fields that it reads. What
// identifies and describes a lease is a Lease, which is part of each of them.
//
// Package store/driver says how to write an engine, and store/storetest tests one.
package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/gate"
)

// Store keeps locks. All methods are safe for concurrent use and send nothing if
// the request is invalid. A method that takes a context blocks until the outcome
// is known, the store's own time limits pass, or the context ends. After
// Close it fails with ErrClosed, or with ErrInvalid if the request is invalid.
type Store struct {
	engine Engine
	gate   *gate.Gate
	// endsCalls and limit are Caps.EndsCalls and Caps.Timeout.
	endsCalls bool
	limit     time.Duration
}

// New returns the store that an engine keeps. It closes the engine when it is closed itself.
func New(e Engine) *Store {
	caps := e.Caps()
	return &Store{engine: e, gate: gate.New(ErrClosed), endsCalls: caps.EndsCalls, limit: caps.Timeout}
}

// Engine returns the engine of the store. Packages of engines use it to offer more than a
// Store does.
func (s *Store) Engine() Engine { return s.engine }

// Acquire makes one attempt to acquire the lock r.Name for r.Owner. It does
// not wait for the lock to become free.
//
// If the lock is granted, the error is nil, and the caller counts the validity
// of the lease from just before the call. If r.Owner already holds the lock,
// Acquire confirms that grant: the lease lasts at least as long as before, and
// the token is the same. Over several nodes the token may be larger, if the call
// gained a node.
//
// Otherwise the error matches
//   - ErrBusy (as *BusyError) if another owner holds the lock;
//   - ErrQuorum (as *QuorumError) if too few nodes gave an answer;
//   - ErrInvalid if the request was refused before anything was sent;
//   - ErrUnsupported if the store cannot give r.Require or keep r.Kind;
//   - ErrKindMismatch (as *KindError) if the lock is in use as another kind;
//   - ErrClosed if the store was closed;
//   - ctx.Err() if the caller gave up;
//
// or it is an error of the engine.
//
// On every error the store itself makes sure that nothing of the attempt
// remains, on a context of its own and if necessary in the background: a
// request still in flight cannot acquire the lock afterwards.
func (s *Store) Acquire(ctx context.Context, r AcquireRequest) (Grant, error) {
	if err := r.Check(s.Caps()); err != nil {
		return Grant{}, err
	}
	g, err := call(s, ctx, false, func(ctx context.Context) (Grant, error) { return s.engine.Acquire(ctx, r) })
	return granted(r.Lease, g, err)
}

// Renew makes each lease last at least its TTL from now, and never shortens
// one. It never creates a lease that is gone. The result has one entry for
// each lease, in the same order. An entry is nil if the lease was renewed, and
// matches ErrNotHeld if the owner certainly no longer holds the lock and
// ErrInvalid if the request was refused. After any other error the renewal may
// or may not have been applied, and calling again is safe.
func (s *Store) Renew(ctx context.Context, leases []Lease) []error {
	if len(leases) == 0 {
		return nil
	}
	caps := s.Caps()
	for i := range leases {
		if leases[i].Check(caps) != nil {
			return s.renewValid(ctx, leases, caps)
		}
	}
	return s.renew(ctx, leases)
}

// renew renews leases that are valid.
func (s *Store) renew(ctx context.Context, leases []Lease) []error {
	errs, err := call(s, ctx, false, func(ctx context.Context) ([]error, error) {
		errs := s.engine.Renew(ctx, leases)
		for i := range errs {
			errs[i] = ended(ctx, errs[i])
		}
		return errs, nil
	})
	if err != nil {
		return slices.Repeat([]error{err}, len(leases))
	}
	return errs
}

// renewValid renews those of the leases that are valid.
func (s *Store) renewValid(ctx context.Context, leases []Lease, caps Caps) []error {
	errs := make([]error, len(leases))
	var valid []Lease
	for i, l := range leases {
		if errs[i] = l.Check(caps); errs[i] == nil {
			valid = append(valid, l)
		}
	}
	if len(valid) == 0 {
		return errs
	}
	results := s.renew(ctx, valid)
	for i := range errs {
		if errs[i] == nil {
			errs[i], results = results[0], results[1:]
		}
	}
	return errs
}

// Release ends the lease of r.Owner and changes no other owner's lease. It
// returns nil if it ended the lease. The error matches ErrNotHeld if r.Owner
// certainly had no lease, as in a second call. After any other error the lease
// may or may not remain, and calling again is safe. A pending Wait of the same
// owner ends with ErrNotHeld.
func (s *Store) Release(ctx context.Context, r ReleaseRequest) error {
	if err := r.Check(s.Caps()); err != nil {
		return err
	}
	r.Renewed = r.Renewed || r.Repeated
	_, err := call(s, ctx, false, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.engine.Release(ctx, r) })
	return err
}

// Wait acquires the lock r.Name for r.Owner, queueing while another owner
// holds it. It blocks until the lock is granted, ctx ends, or an error shows
// that waiting cannot succeed. A free lock goes to the first owner that asks
// for it. Releasing a lock hands it to the first live waiter in the same atomic
// step.
//
// The place in the queue is itself a lease: it lasts for r.TTL, Wait
// refreshes it, and it expires if the process dies. Waiters are ordered by
// arrival. r.Owner must be new. An owner from NewOwnerAt also carries its
// rank, which keeps its place the same on every node, and again after a node
// has lost the queue.
//
// If reason is not nil, Wait calls it with the cause of the delay: once
// before the first pause, and again whenever the cause changes. The cause is
// a *BusyError, or a *QuorumError while too few nodes answer, in which case
// Wait goes on waiting. The holder and the position in it may be old: a store
// need not look more often than it refreshes the place. reason may run on any
// goroutine, may still be called when Wait has just returned, and must not
// block.
//
// The errors are those of Acquire, except that ErrBusy is never returned and
// a QuorumError only if waiting cannot mend it; ErrNotHeld means that
// r.Owner was released during the wait. On every error Wait gives up
// the place and leaves nothing of the attempt behind, as Acquire does.
func (s *Store) Wait(ctx context.Context, r WaitRequest, reason func(error)) (Grant, error) {
	if err := r.Check(s.Caps()); err != nil {
		return Grant{}, err
	}
	g, err := call(s, ctx, true, func(ctx context.Context) (Grant, error) { return s.engine.Wait(ctx, r, reason) })
	return granted(r.Lease, g, err)
}

// ReleaseAndRejoin releases the lease of r as Release does, with the same
// errors, and blocks as Release does. If the lock thereby passes to another
// owner, it also reserves a place in the queue for next, a request for the
// same lock with a new owner. It never acquires a free lock for next. The
// result queued reports whether there is such a place, or may be one. It is
// for a process that is about to want the lock again. Caps.Rejoins reports
// whether that pays; a store in which it does not may only release.
//
// Claim the place promptly by passing next unchanged to Wait, or abandon it
// with Release, which returns ErrNotHeld and cleans up in the background. If
// Wait claims the place, Grant.Since counts from just before the call of
// ReleaseAndRejoin. Until then nobody refreshes the place: it may be granted
// the lock, and it lasts for at most next.TTL.
func (s *Store) ReleaseAndRejoin(ctx context.Context, r ReleaseRequest, next WaitRequest) (queued bool, err error) {
	if err := checkRejoin(r, next, s.Caps()); err != nil {
		return false, err
	}
	r.Renewed = r.Renewed || r.Repeated
	return call(s, ctx, false, func(ctx context.Context) (bool, error) { return s.engine.ReleaseAndRejoin(ctx, r, next) })
}

// BreakLease takes the lease that r.Owner holds with r.Token, for an operator. From then on the
// lease cannot be renewed or healed, and no request of the owner that is still in
// flight can bring it back. The lock stays taken until the owner releases the
// lease, or its validity ends. BreakLease returns how long that can take at most, and
// zero if the lease is over; the caller repeats the call to learn when it is. With
// r.Now the lock is freed at once: the owner may then still work, and only fencing
// tokens protect.
//
// A repeated call changes nothing, and keeps the first note. It also succeeds when
// the lease is over. It blocks for the answer of the engine only.
//
// The error matches ErrNotHeld if r.Owner has no lease with that token, and never
// had one that was broken lately; ErrUnsupported if this lock's lease cannot be
// broken, such as that of another kind of client; or it is as that of Release.
// After any error but these the lease may or may not be broken, and calling again
// is safe.
func (s *Store) BreakLease(ctx context.Context, r BreakRequest) (left time.Duration, err error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	return call(s, ctx, false, func(ctx context.Context) (time.Duration, error) { return s.engine.BreakLease(ctx, r) })
}

// NotifyBroken calls f with the owner of each lease that is broken from now on, by
// whatever handle or process, until stop is called or the store is closed. It
// follows BreakLease, so a renewal that is sent then is refused. It is only a hint:
// a call can be missed or repeated, and can be about a lease that nobody broke. An engine
// that cannot push never calls f: then the next renewal is refused.
//
// f may be called by several goroutines at once, also before NotifyBroken and after
// stop return. It must not block or call the store. A second call of stop does
// nothing.
func (s *Store) NotifyBroken(f func(owner string)) (stop func()) {
	return s.engine.NotifyBroken(f)
}

// Downgrade makes the writer of a read-write lock a reader, without a moment in
// which the lock is free, and renews the lease. r is the writer's lease as it was
// granted; afterwards its Weight is 1. Readers that wait get the lock as well, up to
// the first writer in the queue.
//
// The grant's token is larger than that of the writer, and the readers share it.
// The error matches ErrNotHeld if r.Owner certainly has no lease, or if its lease was
// broken, since a downgrade would renew it (see BreakLease). After any other
// error the lease may be a reader's, and calling again is safe: a reader is granted
// what it has.
func (s *Store) Downgrade(ctx context.Context, r Lease) (Grant, error) {
	if err := r.CheckDowngrade(s.Caps()); err != nil {
		return Grant{}, err
	}
	g, err := call(s, ctx, false, func(ctx context.Context) (Grant, error) { return s.engine.Downgrade(ctx, r) })
	r.Weight = 1
	return granted(r, g, err)
}

// Resize changes the number of permits of the semaphore called name, if it is in
// use. Leases stay as they are. If they no longer fit, nobody is granted a permit
// until they do. Waits for the lock end with an error that matches ErrKindMismatch,
// since they asked for the earlier number.
//
// A lock that nobody uses has no number of permits, and neither is that an error nor
// a lock that has the new number already; so calling again is safe. The error
// matches ErrKindMismatch (as *KindError) if the lock is in use as another kind than
// from.
//
// Some stores keep the number, such as those with several nodes: the error matches
// ErrUnsupported, and says to use a lock with another name.
func (s *Store) Resize(ctx context.Context, name string, from, to Kind) error {
	if err := checkResize(name, from, to, s.Caps()); err != nil {
		return err
	}
	_, err := call(s, ctx, false, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.engine.Resize(ctx, name, from, to)
	})
	return err
}

// Inspect returns the state of one lock without changing it. A free lock is
// not an error. If too few nodes answer, the error matches ErrQuorum, and the
// state has what the others know, which may be nothing.
func (s *Store) Inspect(ctx context.Context, name string) (State, error) {
	if err := CheckName(name); err != nil {
		return State{}, err
	}
	return call(s, ctx, false, func(ctx context.Context) (State, error) { return s.engine.Inspect(ctx, name) })
}

// List returns the locks that are held, or may be held (State.Undecided), and whose
// names start with prefix, sorted by name. It is meant for people: it may be slow, and
// locks that are acquired or released meanwhile may or may not appear. If the store
// gives up early, it returns the locks it found and an error that matches
// ErrIncomplete. If too few nodes answer, or some of a Redis Cluster do not, the error
// matches ErrQuorum, and the locks are those that the others know.
func (s *Store) List(ctx context.Context, prefix string) ([]State, error) {
	return call(s, ctx, false, func(ctx context.Context) ([]State, error) { return s.engine.List(ctx, prefix) })
}

// Caps describes the store. It does not block and may be called after Close.
// Class may change while the store is open, for example when servers join or
// are upgraded; the other fields stay the same.
func (s *Store) Caps() Caps { return s.engine.Caps() }

// Close frees the resources of the store. It waits for pending calls, which end, and for
// clean-up that is still under way, for a bounded time. It releases no lease: each ends when its
// TTL has passed. Calling it twice is harmless.
func (s *Store) Close() error {
	limit := closeLimit
	if s.endsCalls {
		limit = 0
	}
	if !s.gate.Close(limit, func() {}) {
		return nil
	}
	return s.engine.Close()
}

// closeLimit bounds how long Close waits for calls whose contexts have ended.
const closeLimit = 5 * time.Second

// granted sets the Lease of a grant to l, unless the engine has set it.
func granted(l Lease, g Grant, err error) (Grant, error) {
	if err == nil && g.Lease.Owner == "" {
		g.Lease = l
	}
	return g, err
}

// call makes one call of the engine, unless the store is closed or ctx has ended. A wait has no time
// limit, and gives up a place that was made for it if ctx has ended. See Caps.Timeout and Caps.EndsCalls for the context that the engine gets.
func call[T any](s *Store, ctx context.Context, wait bool, do func(context.Context) (T, error)) (result T, err error) {
	if ctx == nil {
		panic("store: nil Context") // before an engine has locked anything
	}
	if err := s.gate.Enter(); err != nil {
		return result, err
	}
	defer s.gate.Leave()
	if err := ctx.Err(); err != nil && !wait {
		return result, err
	}
	if s.limit > 0 && !wait {
		bounded, cancel := context.WithTimeoutCause(ctx, s.limit, ErrTimeLimit)
		defer cancel()
		ctx = bounded
	}
	if s.limit > 0 || wait && !s.endsCalls {
		until, cancel := s.gate.Until(ctx)
		defer cancel()
		ctx = until
	}
	result, err = do(ctx)
	return result, ended(ctx, err)
}

// ended returns ErrClosed instead of an error that says that ctx has ended, if it did because the
// store was closed.
func ended(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), ErrClosed) {
		return ErrClosed
	}
	return err
}
