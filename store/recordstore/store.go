package recordstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/shown"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a Store. The zero value is what most engines need.
type Options struct {
	// Timeout bounds each step with all its repetitions. Zero means 5 seconds.
	Timeout time.Duration
	// Poll is how often a waiter reads the record at first if the driver does not push, and Look
	// how often if it does. Zero means 50 ms and 2 s. A waiter that waits long polls less
	// and less often, up to 16 times Poll.
	Poll, Look time.Duration
	// Logger is told of trouble that no caller learns of. Nil means none.
	Logger *slog.Logger
}

// engine keeps locks in records.
type engine struct {
	driver            Driver
	ringer            Ringer // the driver, or nil
	peers             Peers  // the same
	limit, poll, look time.Duration
	most              int // bytes of a record; 0: any number
	log               *slog.Logger
	clock             clock.Clock
	gate              *gate.Gate
	rejoined          unclaimed.Places[rejoin]

	mu        sync.Mutex
	registers map[string]*register // by the name of the lock
}

// New returns a store over d, which it closes when it is closed itself. o may be nil.
func New(d Driver, o *Options) *store.Store { return store.New(newEngine(d, o)) }

func newEngine(d Driver, o *Options) *engine {
	o = cmp.Or(o, &Options{})
	ringer, _ := d.(Ringer)
	peers, _ := d.(Peers)
	most := 0
	if b, ok := d.(Bounded); ok {
		most = b.MaxLen()
	}
	return &engine{
		most:   most,
		driver: d, ringer: ringer, peers: peers, gate: gate.New(store.ErrClosed), clock: clock.System(), registers: map[string]*register{},
		limit: cmp.Or(o.Timeout, 5*time.Second), poll: cmp.Or(o.Poll, 50*time.Millisecond), look: cmp.Or(o.Look, 2*time.Second),
		log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
	}
}

// epoch is larger than the age of any entry, so that no instant is before 1.
const epoch = clock.Instant(1 << 60)

func (s *engine) now() clock.Instant { return epoch + s.clock.Now() }

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	c := s.driver.Describe()
	c.Nodes, c.Quorum = cmp.Or(c.Nodes, 1), cmp.Or(c.Quorum, 1)
	c.Rejoins = true
	return c
}

// Key returns the key of a lock's record: the name in hexadecimal, which every engine takes
// and which is as well ordered, or the hash of a long name. The name is in the record, too.
func Key(name string) string {
	if len(name) <= 100 {
		return hex.EncodeToString([]byte(name))
	}
	h := sha256.Sum256([]byte(name))
	return "h" + hex.EncodeToString(h[:])
}

// maxRegisters is how many records the store remembers. Forgetting one costs a read at the next
// step and, if the engine does not date its records, up to a TTL until a dead holder is seen.
const maxRegisters = 8192

// key returns the key of a lock's record.
func (s *engine) key(name string) string {
	if d, ok := s.driver.(Keyer); ok {
		return d.Key(name)
	}
	return Key(name)
}

// register returns the register of a lock.
func (s *engine) register(name string) *register {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.registers[name]
	if g == nil {
		looks := 0
		for n, old := range s.registers {
			if looks++; len(s.registers) < maxRegisters || looks > 16 {
				break
			}
			if old.forgettable() {
				delete(s.registers, n)
			}
		}
		g = &register{s: s, name: name, key: s.key(name), waiters: map[string]*waiter{}}
		s.registers[name] = g
	}
	return g
}

// failed shapes the error of a request that was not carried out, as far as is known.
func (s *engine) failed(request, name string, maybe bool, err error) error {
	if late := errors.Is(err, errLimit); !late && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) || errors.Is(err, store.ErrClosed) {
		return fmt.Errorf("%s %q: %w", request, name, err) // the caller gave up
	}
	n := store.NodeOutcome{Node: s.driver.Describe().Engine, Outcome: store.Unreachable, Err: err}
	switch {
	case errors.Is(err, ErrRefused) && !maybe:
		n.Outcome = store.Refused
	case errors.Is(err, ErrConflict) && !maybe:
		n.Outcome = store.Unsettled
	case errors.Is(err, errLimit):
		n.Outcome = store.TimedOut
	}
	return &store.QuorumError{Op: request, Name: name, Store: n.Node, Need: 1, Nodes: []store.NodeOutcome{n}}
}

// errLimit is matched by the errors of steps that Options.Timeout has ended.
var errLimit = errors.New("no success within")

// limited returns err as the error of a step that Options.Timeout has ended.
func (s *engine) limited(err error) error { return fmt.Errorf("%w %v: %w", errLimit, s.limit, err) }

// refusal returns the error for a verdict that is neither Granted nor Done.
func refusal(request string, r store.Lease, ans rule.Answer) error {
	holder := shown.Holder(ans.Blocker.Owner, ans.Blocker.Meta)
	holder.Waiting = ans.Blocker.Waiting
	switch inUse := store.Kind(ans.Spec); {
	case ans.Verdict == rule.Busy:
		return &store.BusyError{Name: r.Name, Holder: holder, ExpiresIn: ans.ExpiresIn, Position: ans.Position}
	case ans.Verdict == rule.Mismatch && inUse != r.Kind.Normal():
		return &store.KindError{Name: r.Name, Asked: r.Kind, InUse: inUse, Holder: holder}
	case ans.Verdict == rule.Mismatch:
		return store.HeavierError(request, r)
	case ans.Verdict == rule.Buried:
		return store.BrokenError(request, r.Name)
	}
	return fmt.Errorf("%s %q: %w", request, r.Name, store.ErrNotHeld)
}

// advance hands the lock to waiters, if there is room for some.
func (t *txn) advance() {
	r, turns := rule.Advance(t.rec, t.floor, t.now)
	t.rec = r
	t.wrote = t.wrote || len(turns) > 0
}

// admit asks for the lock, and for a place in its queue that lasts for wait if that is
// positive. If the record has no room for one more owner, it returns full.
func (t *txn) admit(r store.Lease, wait time.Duration) (ans rule.Answer, full bool) {
	t.advance()
	if t.most > 0 && !isIn(t.rec, r.Owner) && maxLen(t.rec)+len(r.Name)+maxLenOf(r.Owner, r.Meta, r.Attempt) > t.most*7/8 { // the rest is for breaks
		return rule.Answer{}, true
	}
	after, ans := rule.Admit(t.rec, rule.Ask{
		Spec: rule.Spec(r.Kind.Normal()), Owner: r.Owner, Attempt: r.Attempt, Meta: r.Meta, Weight: r.Weight, TTL: r.TTL,
		Fair: wait > 0 || !r.Kind.IsMutex(), Wait: wait, Floor: t.floor,
	}, t.now)
	if ans.Verdict == rule.Granted || ans.Verdict == rule.Busy && wait > 0 {
		t.set(after)
		t.touch(r.Owner)
	}
	return ans, false
}

// full is the error of a request that admit has found no room for.
func (s *engine) full(request, name string) error {
	return s.failed(request, name, false, Refusal("it has so many holders and waiters that one more might not fit into its record, which can have %d bytes", s.most))
}

// end ends a lease or a place, and hands the lock on. It reports whether there was a lease.
func (t *txn) end(r store.ReleaseRequest) bool {
	after, ans := rule.Release(t.rec, rule.End{Owner: r.Owner, Attempt: r.Attempt, Undo: r.Undo}, t.now)
	if ans.Verdict == rule.Done || len(after.Queue) != len(t.rec.Queue) {
		t.set(after)
		t.advance()
	}
	return ans.Verdict == rule.Done
}

// Acquire implements driver.Engine.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := r.CheckClass(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	var ans rule.Answer
	full := false
	maybe, err := s.register(r.Name).do(ctx, func(t *txn) { ans, full = t.admit(r.Lease, 0) })
	if err != nil {
		if maybe {
			s.undo(r.Lease)
		}
		return store.Grant{}, s.failed("acquire", r.Name, maybe, err)
	}
	if full {
		return store.Grant{}, s.full("acquire", r.Name)
	}
	if ans.Verdict != rule.Granted {
		return store.Grant{}, refusal("acquire", r.Lease, ans)
	}
	return store.Grant{Token: ans.Token, Slot: ans.Slot}, nil
}

// undo takes an attempt back in the background. It replaces the record even if it finds
// nothing of the attempt in it, so that no write of the attempt can take effect any more.
func (s *engine) undo(r store.Lease) {
	s.gate.Go(func() {
		g := s.register(r.Name)
		until := s.now().Add(max(r.TTL, s.limit))
		for {
			_, err := g.do(context.Background(), func(t *txn) {
				t.end(store.ReleaseRequest{Lease: r, Undo: true})
				t.wrote = true
			})
			if err == nil {
				return
			}
			if s.now() > until || s.gate.Closed() || errors.Is(err, ErrRefused) {
				s.log.Warn("cannot undo an attempt: the lock may stay taken until its TTL is over", "lock", r.Name, "owner", r.Owner, "err", err)
				return
			}
		}
	})
}

// Renew implements driver.Engine.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	type renewal struct {
		g    *register
		step *step
		done bool
	}
	all := make([]renewal, len(leases))
	for i, r := range leases {
		if errs[i] = ctx.Err(); errs[i] != nil {
			continue
		}
		n := &all[i]
		n.g = s.register(r.Name)
		n.step = n.g.begin(func(t *txn) {
			after, ans := rule.Renew(t.rec, r.Owner, r.TTL, t.now)
			if n.done = ans.Verdict == rule.Done; n.done {
				t.set(after)
				t.touch(r.Owner)
			}
		})
	}
	for i := range all {
		n := &all[i]
		if n.step == nil {
			continue
		}
		if maybe, err := n.g.wait(ctx, n.step); err != nil {
			errs[i] = s.failed("renew", leases[i].Name, maybe, err)
		} else if !n.done {
			errs[i] = store.ErrNotHeld
		}
	}
	return errs
}

// Release implements driver.Engine.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	if _, ok := s.rejoined.Take(r.Lease); ok {
		s.undo(r.Lease)
		return store.ErrNotHeld
	}
	done := false
	maybe, err := s.register(r.Name).do(ctx, func(t *txn) { done = t.end(r) || t.ambiguous && done })
	if err != nil {
		return s.failed("release", r.Name, maybe, err)
	}
	if !done {
		return store.ErrNotHeld
	}
	return nil
}

// Close implements driver.Engine.
func (s *engine) Close() error {
	first := s.gate.Close(s.limit, func() {
		for _, p := range s.rejoined.Close() {
			s.undo(p.lease)
		}
	})
	if !first {
		return nil
	}
	return s.driver.Close()
}
