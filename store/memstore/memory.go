// Package memstore keeps locks in the memory of one process. It applies
// internal/rule under a mutex: it is exact and involves no I/O. Use it in tests,
// and in programs whose goroutines compete only with each other.
//
// The store keeps locks of every kind: mutexes, semaphores and read-write locks. For
// store.Open the URL is memory: and each call opens a new store.
package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/shown"
	"github.com/leasehold-dev/leasehold/store"
)

// engine keeps locks in memory. Two Stores share nothing. It is safe for
// concurrent use. Only Wait blocks; the other methods wait at most for the mutex
// that each call holds for a short time. Wait does not poll: the call that frees the
// lock wakes the next waiter.
type engine struct {
	clock  clock.Clock
	broken audience.Audience // is notified of broken leases

	mu      sync.Mutex
	closed  bool
	records map[string]rule.Record
	// lines has the waiters by the lock's name. A lock without waiters has no
	// entry.
	queues map[string]*queue
	// forgotten is the highest token of all records that were dropped. Every
	// grant draws a higher one. Tokens of a lock therefore rise even after its
	// record was dropped, and unused names cost no memory. Tokens of one lock may
	// skip numbers.
	forgotten fence.Token
	// untilSweep is the number of acquires until the next sweep.
	untilSweep int
}

// New returns an empty store. Two stores share nothing. Only Wait blocks. o may be nil.
func New(o *Options) *store.Store { return store.New(newEngine(o)) }

func newEngine(o *Options) *engine {
	s := &engine{clock: clock.System(), records: make(map[string]rule.Record), queues: make(map[string]*queue)}
	if o != nil && o.Clock != nil {
		s.clock = o.Clock
	}
	return s
}

// Acquire implements driver.Engine. Its errors match store.ErrBusy,
// store.ErrInvalid, store.ErrClosed or ctx.Err().
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := r.CheckClass(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Grant{}, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.sweepSometimes(now)
	// After settled, a free lock has no waiter that it should go to. It can forget
	// the record, which raises the floor that ask reads.
	before := s.settled(r.Name, now)
	ask := s.ask(r.Lease)
	ask.Fair = !r.Kind.IsMutex() // there may be room for it, and waiters ahead of it
	rec, ans := rule.Admit(before, ask, now)
	s.keep(r.Name, rec, now)
	switch ans.Verdict {
	case rule.Granted:
		return store.Grant{Token: ans.Token, Slot: ans.Slot}, nil
	case rule.Busy:
		holder := store.DecodeHolder(ans.Blocker.Owner, ans.Blocker.Meta)
		holder.Waiting = ans.Blocker.Waiting
		return store.Grant{}, &store.BusyError{Name: r.Name, Holder: holder, ExpiresIn: ans.ExpiresIn}
	}
	return store.Grant{}, refusal("acquire", r.Lease, ans)
}

// ask is what r asks of a record that was read before: reading it may forget an
// earlier one, whose tokens are the floor.
func (s *engine) ask(r store.Lease) rule.Ask {
	return rule.Ask{
		Spec:    rule.Spec(r.Kind.Normal()),
		Owner:   r.Owner,
		Attempt: r.Attempt,
		Meta:    r.Meta,
		Weight:  r.Weight,
		TTL:     r.TTL,
		Floor:   s.forgotten + 1,
	}
}

// refusal returns the error for a verdict other than Granted and Busy.
func refusal(op string, r store.Lease, ans rule.Answer) error {
	switch inUse := store.Kind(ans.Spec); {
	case ans.Verdict == rule.Mismatch && inUse != r.Kind.Normal():
		return &store.KindError{Name: r.Name, Asked: r.Kind, InUse: inUse, Holder: store.DecodeHolder(ans.Blocker.Owner, ans.Blocker.Meta)}
	case ans.Verdict == rule.Mismatch:
		return store.HeavierError(op, r)
	}
	if ans.Verdict == rule.Buried {
		return store.BrokenError(op, r.Name)
	}
	return fmt.Errorf("%s %q: unexpected verdict: %v", op, r.Name, ans.Verdict)
}

// Renew implements driver.Engine.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	if err := s.enter(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	for i, r := range leases {
		rec, ans := rule.Renew(s.alive(r.Name, now), r.Owner, r.TTL, now)
		s.keep(r.Name, rec, now)
		if ans.Verdict != rule.Done {
			errs[i] = store.ErrNotHeld
		}
	}
	return errs
}

// Release implements driver.Engine. A pending Wait of the same owner ends with
// store.ErrNotHeld.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	// No tombstone is needed: no acquire can be in flight here.
	rec, ans := rule.Release(s.alive(r.Name, now), rule.End{Owner: r.Owner, Attempt: r.Attempt, Undo: r.Undo}, now)
	if l := s.queues[r.Name]; l != nil {
		l.dismiss(r.Owner, fmt.Errorf("wait for %q: %w: its owner was released during the wait", r.Name, store.ErrNotHeld))
	}
	s.keep(r.Name, rec, now)
	if ans.Verdict != rule.Done {
		return store.ErrNotHeld
	}
	return nil
}

// ReleaseAndRejoin implements driver.Engine. It only releases.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	return false, s.Release(ctx, r)
}

// Inspect implements driver.Engine.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := s.enter(ctx); err != nil {
		return store.State{}, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	rec := s.settled(name, now)
	st := shown.State(name, rec, now)
	st.Queue = shown.Queue(rec, now)
	st.Broken = shown.Broken(rec, now)
	return st, nil
}

// List implements driver.Engine. Its result is exact.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	held := []store.State{}
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if st := shown.State(name, s.settled(name, now), now); st.Held {
			held = append(held, st)
		}
	}
	return held, nil
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	return store.Caps{
		Engine:   "memory",
		Nodes:    1,
		Quorum:   1,
		Reach:    "process",
		Clock:    "this process's own clock",
		Notifies: true, EndsCalls: true,
		Class: store.CrashSafe, // a crash of the process ends all holders too
	}
}

// Close implements driver.Engine. It never fails. Pending Waits end at once with
// store.ErrClosed.
func (s *engine) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.queues {
		for owner := range l.waiters {
			l.dismiss(owner, store.ErrClosed)
		}
		l.timer.Stop()
	}
	s.records, s.queues = nil, nil // nothing else can reach them
	return nil
}

// enter locks the mutex for one step. It returns an error, with the mutex
// unlocked, if ctx has ended or the store was closed.
func (s *engine) enter(ctx context.Context) error {
	s.mu.Lock()
	// ctx is checked with the mutex locked: it may have ended before that.
	err := ctx.Err()
	if s.closed {
		err = store.ErrClosed
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}
