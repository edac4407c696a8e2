// Package memstore keeps locks in the memory of one process. It is the rule
// under a mutex: exact, with nothing that can fail, for tests and for programs
// whose only contenders are their own goroutines.
package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Options change how a Store works. The zero value is right for all but tests.
type Options struct {
	// Clock counts the TTLs; nil means clock.System().
	Clock clock.Clock
}

// Store is a store.Waiter in memory. Two Stores know nothing of each other.
// Its methods never block for longer than other calls compute; Wait does,
// without asking again meanwhile: whoever frees the lock hands it on.
type Store struct {
	clock clock.Clock

	mu      sync.Mutex
	closed  bool
	records map[string]rule.Record
	// lines are those who wait, by the lock's name; a name that nobody waits for
	// has none.
	lines map[string]*line
	// forgotten is the highest token of all records that were dropped. Every
	// grant draws a higher one, so a lock that comes back after it was
	// dropped goes on above its last token, and a name nobody uses any more
	// costs no memory. Tokens of one lock may thereby skip numbers; they only
	// have to rise.
	forgotten fence.Token
	// untilSweep counts down the acquires to the next sweep.
	untilSweep int
}

var _ store.Waiter = (*Store)(nil)

// New makes an empty store. o may be nil.
func New(o *Options) *Store {
	s := &Store{clock: clock.System(), records: make(map[string]rule.Record), lines: make(map[string]*line)}
	if o != nil && o.Clock != nil {
		s.clock = o.Clock
	}
	return s
}

// Acquire implements store.Store. Its errors are *store.BusyError,
// store.ErrInvalid, store.ErrClosed and that of ctx.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := r.Check(0); err != nil {
		return store.Grant{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Grant{}, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.sweepSometimes(now)
	// Settled, it is free only if nobody waits who has a claim to it.
	rec, ans := rule.Admit(s.settled(r.Name, now), s.ask(r), now)
	s.keep(r.Name, rec, now)
	switch ans.Verdict {
	case rule.Granted:
		g := store.Grant{Token: ans.Token, Spare: r.Spare}
		if ans.Again { // how many were reserved with it is not kept
			g.Spare = 0
		}
		return g, nil
	case rule.Busy:
		return store.Grant{}, &store.BusyError{
			Name:      r.Name,
			Holder:    store.DecodeHolder(ans.Blocker.Owner, ans.Blocker.Meta),
			ExpiresIn: ans.ExpiresIn,
		}
	}
	return store.Grant{}, unexpected("acquire", r.Name, ans)
}

func (s *Store) ask(r store.Request) rule.Ask {
	return rule.Ask{
		Spec:  rule.Mutex,
		Owner: r.Owner,
		Meta:  r.Meta,
		TTL:   r.TTL,
		Spare: r.Spare,
		Floor: s.forgotten + 1,
	}
}

// unexpected are the verdicts that need another kind of lock or a tombstone:
// this store makes neither.
func unexpected(op, name string, ans rule.Answer) error {
	return fmt.Errorf("%s %q: unexpected verdict: %v", op, name, ans.Verdict)
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, leases []store.Request) []error {
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
		if errs[i] = r.Check(0); errs[i] != nil {
			continue
		}
		rec, ans := rule.Renew(s.alive(r.Name, now), r.Owner, r.TTL, now)
		s.keep(r.Name, rec, now)
		if ans.Verdict != rule.Done {
			errs[i] = store.ErrNotHeld
		}
	}
	return errs
}

// Release implements store.Store. A Wait of the owner that is under way ends
// with store.ErrNotHeld.
func (s *Store) Release(ctx context.Context, r store.Request) error {
	if err := cmp.Or(store.CheckName(r.Name), store.CheckOwner(r.Owner)); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	// No tombstone: an acquire here has either happened or never will.
	rec, ans := rule.Release(s.alive(r.Name, now), r.Owner, 0, now)
	if l := s.lines[r.Name]; l != nil {
		l.dismiss(r.Owner, fmt.Errorf("wait for %q: %w: its owner was released meanwhile", r.Name, store.ErrNotHeld))
	}
	s.keep(r.Name, rec, now)
	if ans.Verdict != rule.Done {
		return store.ErrNotHeld
	}
	return nil
}

// Inspect implements store.Store.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := store.CheckName(name); err != nil {
		return store.State{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.State{}, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	rec := s.settled(name, now)
	st := state(name, rec, now)
	for _, p := range rec.Line[:min(len(rec.Line), store.MaxLine)] {
		st.Line = append(st.Line, store.Place{
			Holder:    store.DecodeHolder(p.Owner, p.Meta),
			ExpiresIn: p.Expiry.Sub(now),
		})
	}
	return st, nil
}

// List implements store.Store. Its result is exact.
func (s *Store) List(ctx context.Context, prefix string) ([]store.State, error) {
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
		if st := state(name, s.settled(name, now), now); st.Held {
			held = append(held, st)
		}
	}
	return held, nil
}

// Caps implements store.Store.
func (s *Store) Caps() store.Caps {
	return store.Caps{
		Engine: "memory",
		Nodes:  1,
		Quorum: 1,
		Reach:  "process",
		Clock:  "this process's own clock",
		Class:  store.CrashSafe, // who crashes takes all holders along
	}
}

// Close implements store.Store. It never fails. Those who wait are told at once.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, l := range s.lines {
		for owner := range l.waiters {
			l.dismiss(owner, store.ErrClosed)
		}
		l.timer.Stop()
	}
	s.records, s.lines = nil, nil // all that could reach them was this Store
	return nil
}

// enter locks the store for one step, unless the caller has given up or the
// store was closed.
func (s *Store) enter(ctx context.Context) error {
	if ctx == nil {
		panic("memory: nil Context") // while the mutex is free
	}
	s.mu.Lock()
	// After the lock: ctx may have ended while others were in here.
	err := ctx.Err()
	if s.closed {
		err = store.ErrClosed
	}
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// state is what r says of the lock called name.
func state(name string, r rule.Record, now clock.Instant) store.State {
	r = rule.Expire(r, now)
	if len(r.Holds) == 0 {
		return store.State{Name: name}
	}
	h := r.Holds[0]
	return store.State{
		Name:      name,
		Held:      true,
		Holder:    store.DecodeHolder(h.Owner, h.Meta),
		Token:     h.Token,
		ExpiresIn: h.Expiry.Sub(now),
	}
}
