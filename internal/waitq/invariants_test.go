package waitq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// world is a driver of a queue in which everything ends in any order and with any result. It
// keeps its own record of which goroutines wait and which one asks the store, and compares
// each action of the queue with it.
type world struct {
	choices []byte // they decide what happens next
	q       Queue[int]
	now     clock.Instant
	wall    uint64 // the time of day
	names   int
	story   []string
	broken  error

	order         []*Waiter[int] // waiters, in order of arrival
	tries         []*Waiter[int]
	started       int // goroutines that have not entered yet
	place         *placeRecord
	rank          uint64 // the rank that the next place must keep, or 0
	placeReserved bool

	lease     leaseRecord
	others    int         // other leases of this process, which the queue does not pass on
	lastToken fence.Token // the token of the last grant or pass
	reserved  fence.Token // the last token that the store has reserved
}

type placeRecord struct {
	self      *Waiter[int] // nil: a goroutine waits there for the queue
	cancelled bool
	done      bool // the wait has ended
}

// leaseRecord is the lease that is passed on.
type leaseRecord struct {
	state    leaseState
	passes   int
	mark     clock.Instant
	asked    Action[int] // ReserveTokens
	rejoined bool        // its release has reserved a place
}

type leaseState int

const (
	noLease leaseState = iota
	inUse
	asking
	releasing
)

func newWorld(choices []byte) *world {
	w := &world{choices: choices, now: clock.Instant(time.Hour), wall: 1e15}
	bounds := new(Cohort)
	if w.pick(4) > 0 {
		*bounds = Cohort{MostPasses: 1 + w.pick(4), For: time.Duration(1+w.pick(5)) * time.Second, MostTokens: 1 + w.pick(4)}
	}
	w.q = New[int](10*time.Second, bounds, new(Contention))
	return w
}

// pick returns a number below n.
func (w *world) pick(n int) int {
	if len(w.choices) == 0 || n == 0 {
		return 0
	}
	c := w.choices[0]
	w.choices = w.choices[1:]
	return int(c) % n
}

// flaw records the first invariant that is broken.
func (w *world) flaw(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

// run lets events happen until the choices are used up, and then ends what is under way. It
// returns the first broken invariant.
func (w *world) run() error {
	for len(w.choices) > 0 && w.broken == nil {
		events := w.possible()
		events[w.pick(len(events))]()
		w.check()
	}
	for range 1000 {
		if w.broken != nil || !w.finish() {
			break
		}
		w.check()
	}
	if w.broken == nil && (len(w.order) > 0 || !w.q.Idle() || w.placeReserved) {
		w.flaw("in the end %d wait, want none; the queue is %v, want idle; a place is reserved: %v, want false", len(w.order), w.q.Phase(), w.placeReserved)
	}
	if w.broken != nil {
		return fmt.Errorf("%v, after the events and actions %v", w.broken, w.story)
	}
	return nil
}

// possible returns the events that may happen now. Time may always pass.
func (w *world) possible() []func() {
	events := []func(){func() { w.now = w.now.Add(time.Second); w.wall += 1e6 }}
	if len(w.order)+len(w.tries) < 5 {
		events = append(events, func() {
			w.names++
			tries := len(w.tries)
			w.step(Event[int]{Kind: Arrive})
			x := &Waiter[int]{Of: w.names, Listens: w.pick(3) == 0}
			if len(w.tries) > tries {
				w.tries[tries] = x
			} else {
				w.step(Event[int]{Kind: Join, Waiter: x})
			}
		})
	}
	for _, x := range w.order {
		switch {
		case !x.ended:
			events = append(events, func() { w.step(Event[int]{Kind: Ended, Waiter: x}) })
		case w.place == nil || w.place.self != x:
			events = append(events, func() { w.step(Event[int]{Kind: Leave, Waiter: x}) })
		}
	}
	for _, x := range w.tries {
		events = append(events,
			func() { w.grant(TryGranted, x) },
			func() { w.step(Event[int]{Kind: TryRefused, Waiter: x, Why: Reason(w.pick(3))}) },
			func() { w.step(Event[int]{Kind: TryFailed, Waiter: x}) })
	}
	if w.started > 0 {
		events = append(events, w.enter)
	}
	if p := w.place; p != nil {
		if !p.done {
			events = append(events,
				func() { w.step(Event[int]{Kind: NewReason, Why: Reason(w.pick(3)), Pushed: w.pick(2) == 0}) },
				func() { w.grant(Granted, nil) },
				func() { w.step(Event[int]{Kind: Refused}) })
		}
		if p.done || p.cancelled || p.self != nil && p.self.ended {
			events = append(events, w.leavePlace)
		}
	}
	switch w.lease.state {
	case inUse:
		events = append(events,
			func() { w.step(Event[int]{Kind: Unlock, Passable: w.pick(8) > 0}) },
			func() { w.step(Event[int]{Kind: LeaseOver}) })
	case asking:
		events = append(events, w.answerTokens, func() { w.others++; w.step(Event[int]{Kind: LeaseOver}) })
	case releasing:
		events = append(events, func() { w.step(Event[int]{Kind: LeaseOver}) })
		if !w.lease.rejoined {
			events = append(events, func() { w.lease.rejoined = true; w.reserve(true) })
		}
	}
	if w.others > 0 {
		events = append(events, func() { w.others--; w.reserve(false) }, func() { w.others-- })
	}
	if w.placeReserved {
		events = append(events, func() { w.step(Event[int]{Kind: Lapse}) })
	}
	return events
}

// finish ends one thing that is under way, with success. It returns false if there is none.
func (w *world) finish() bool {
	w.now = w.now.Add(time.Millisecond)
	ended := slices.IndexFunc(w.order, func(x *Waiter[int]) bool { return x.ended && (w.place == nil || w.place.self != x) })
	switch {
	case ended >= 0:
		w.step(Event[int]{Kind: Leave, Waiter: w.order[ended]})
	case len(w.tries) > 0:
		w.grant(TryGranted, w.tries[0])
	case w.started > 0:
		w.enter()
	case w.place != nil && (w.place.done || w.place.cancelled || w.place.self != nil && w.place.self.ended):
		w.leavePlace()
	case w.place != nil:
		w.grant(Granted, nil)
	case w.lease.state == inUse:
		w.step(Event[int]{Kind: Unlock, Passable: true})
	case w.lease.state == asking:
		w.answerTokens()
	case w.lease.state == releasing:
		w.step(Event[int]{Kind: LeaseOver})
	case w.placeReserved:
		w.step(Event[int]{Kind: Lapse})
	default:
		return false
	}
	return true
}

func (w *world) enter() {
	w.started--
	w.step(Event[int]{Kind: Enter})
}

func (w *world) grant(kind EventKind, by *Waiter[int]) {
	spare := min(w.pick(4), w.q.bounds.MostTokens)
	token := max(w.lastToken, w.reserved) + 1 + fence.Token(w.pick(2))
	w.step(Event[int]{Kind: kind, Waiter: by, Token: token, Spare: spare})
}

func (w *world) leavePlace() {
	p := w.place
	w.place = nil
	if p.self != nil {
		w.step(Event[int]{Kind: PlaceOver})
	} else {
		w.step(Event[int]{Kind: Enter})
	}
}

// answerTokens answers ReserveTokens, with an error, or with tokens that need not follow those
// that are left.
func (w *world) answerTokens() {
	e := Event[int]{Kind: TokensReserved, Waiting: w.pick(2) == 0, Passable: w.pick(8) > 0}
	if w.pick(4) > 0 {
		e.Token, e.Count = max(w.lease.asked.Token, w.reserved)+1+fence.Token(w.pick(2)), w.pick(w.lease.asked.Count+1)
	}
	w.step(e)
}

func (w *world) reserve(own bool) {
	w.wall += 1e3
	w.step(Event[int]{Kind: Reserve, Own: own})
}

// step steps the queue with an event, and carries out its actions.
func (w *world) step(e Event[int]) {
	e.Rank = w.wall
	who := 0
	if e.Waiter != nil {
		who = e.Waiter.Of
	}
	before := w.lease
	w.story = append(w.story, fmt.Sprintf("%d of %d", e.Kind, who))
	w.expect(e)
	actions := w.q.Step(e, w.now, nil)
	given := 0
	for _, a := range actions {
		w.story = append(w.story, fmt.Sprintf("->%d", a.Kind))
		if w.apply(a, e); a.Kind == Give || a.Kind == Discard {
			given++
		}
	}
	switch e.Kind {
	case Granted:
		if given != 1 {
			w.flaw("a grant was given or discarded %d times, want once", given)
		}
	case Unlock, TokensReserved:
		if w.lease == before {
			w.flaw("a lease that was unlocked is neither passed on nor released")
		}
	case Reserve:
		if !slices.ContainsFunc(actions, func(a Action[int]) bool { return a.Kind == GiveUp }) {
			w.placeReserved = true
		}
	}
	if w.placeReserved && !w.q.reservation.exists {
		w.flaw("a reserved place was forgotten, want it used or given up")
	}
}

// expect records what an event changes.
func (w *world) expect(e Event[int]) {
	if e.Kind == Join || e.Kind == TryRefused {
		if len(w.order) == 0 {
			w.rank = 0
		}
	}
	switch e.Kind {
	case Join:
		w.order = append(w.order, e.Waiter)
	case TryGranted, TryFailed, TryRefused:
		w.tries = slices.DeleteFunc(w.tries, func(x *Waiter[int]) bool { return x == e.Waiter })
		if e.Kind == TryRefused {
			w.order = slices.Insert(w.order, 0, e.Waiter)
		}
	case Leave:
		w.drop(e.Waiter)
	case Refused:
		w.place.done = true
	case Granted:
		w.place.done = true
	case LeaseOver:
		w.lease = leaseRecord{}
	case TokensReserved:
		if e.Count != 0 {
			w.reserved = e.Token + fence.Token(e.Count) - 1
		}
		if e.Token != 0 && !e.Waiting {
			w.lease.passes, w.lease.mark = 0, w.now
		}
	}
	if e.Kind == Granted || e.Kind == TryGranted {
		w.reserved = e.Token + fence.Token(e.Spare)
		w.rank = 0
		switch {
		case e.Kind == Granted && w.firstLive() == nil:
		case w.q.bounds.Passes():
			w.lease = leaseRecord{state: inUse, mark: w.now}
		default:
			w.others++
		}
		w.lastToken = e.Token
	}
}

func (w *world) drop(x *Waiter[int]) {
	w.order = slices.DeleteFunc(w.order, func(o *Waiter[int]) bool { return o == x })
}

func (w *world) firstLive() *Waiter[int] {
	for _, x := range w.order {
		if !x.ended {
			return x
		}
	}
	return nil
}

// apply carries out one action.
func (w *world) apply(a Action[int], e Event[int]) {
	switch a.Kind {
	case Try:
		w.tries = append(w.tries, nil)
	case EnterYourself:
		w.step(Event[int]{Kind: Enter})
		if w.place == nil {
			w.flaw("a waiter was told to enter the queue itself, and has no place")
		} else {
			w.place.self = a.Waiter
		}
	case Start:
		w.started++
	case Wait:
		if w.rank != 0 && !a.Reserved && w.q.Rank() != w.rank {
			w.flaw("the next place has rank %d, want %d: a goroutine has waited since the last place", w.q.Rank(), w.rank)
		}
		if a.Reserved != w.placeReserved {
			w.flaw("a place is reserved: %v; the queue uses a reserved place: %v, want the same", w.placeReserved, a.Reserved)
		}
		w.place, w.rank, w.placeReserved = new(placeRecord), w.q.Rank(), false
	case GiveUp:
		switch {
		case a.Reserved:
			if e.Kind == Lapse {
				w.placeReserved = false
			}
		case w.place == nil:
			w.flaw("a place is given up that does not exist")
		case len(w.order) > 0:
			w.flaw("the place is given up while %d wait", len(w.order))
		default:
			w.place.cancelled = true
		}
	case Tell:
		if !slices.Contains(w.order, a.Waiter) {
			w.flaw("%d gets a reason to wait and does not wait", a.Waiter.Of)
		}
	case Refuse:
		w.drop(a.Waiter)
	case Give, Pass:
		w.answer(a)
	case ReserveTokens:
		w.lease.state, w.lease.asked = asking, a
		if a.Count < 1 || a.Count > w.q.bounds.MostTokens {
			w.flaw("%d tokens are asked for, want 1 to %d", a.Count, w.q.bounds.MostTokens)
		}
	case Release:
		w.lease.state = releasing
		if w.q.Phase() == Idle {
			w.lease = leaseRecord{}
			w.others++
		}
	}
}

// answer gives a lease to a waiter, which must be the first that is not about to leave.
func (w *world) answer(a Action[int]) {
	if first := w.firstLive(); a.Waiter != first {
		w.flaw("%d gets the lease, and is not the first waiter that is not about to leave", a.Waiter.Of)
	}
	w.drop(a.Waiter)
	if a.Kind == Give {
		w.place = nil
		return
	}
	l := &w.lease
	if a.Token <= w.lastToken || a.Token > w.reserved {
		w.flaw("a pass with token %d, want more than %d and at most %d, the last that is reserved", a.Token, w.lastToken, w.reserved)
	}
	w.lastToken = a.Token
	if l.passes >= w.q.bounds.MostPasses || w.now.Sub(l.mark) >= w.q.bounds.For {
		w.flaw("pass %d after %v, want %d passes at most within %v", l.passes+1, w.now.Sub(l.mark), w.q.bounds.MostPasses, w.q.bounds.For)
	}
	l.passes++
	l.state = inUse
}

// check checks the invariants that hold between two events.
func (w *world) check() {
	asks := len(w.tries) + w.started
	if w.place != nil {
		asks++
	}
	if w.lease.state != noLease {
		asks++
	}
	if asks > 1 {
		w.flaw("%d ask the store or have the lease, want one at most", asks)
	}
	if asks == 0 && w.firstLive() != nil {
		w.flaw("%d waits, and no goroutine asks the store", w.firstLive().Of)
	}
	if p := w.place; p != nil && len(w.order) == 0 && !p.cancelled && !p.done {
		w.flaw("a place is kept without a waiter")
	}
	if w.q.Len() != len(w.order) {
		w.flaw("the queue has %d waiters, want %d", w.q.Len(), len(w.order))
	}
	i := 0
	for x := range w.q.Waiters() {
		if i >= len(w.order) || w.order[i] != x || w.q.Ahead(x) != i {
			w.flaw("the waiter at index %d is not the one that arrived there", i)
			break
		}
		i++
	}
}

// searched takes some random runs, and returns the first broken invariant.
func searched(runs int) error {
	random := rand.New(rand.NewPCG(1, 2))
	for run := range runs {
		choices := make([]byte, 20+random.IntN(200))
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		if err := newWorld(choices).run(); err != nil {
			return fmt.Errorf("run %d: %w", run, err)
		}
	}
	return nil
}

// In every order of events, at most one goroutine asks the store, and one does as long as any
// waits. Waiters get the lease in order of arrival. Places, reservations and grants are used
// or given up. Passes keep to their tokens and bounds.
func TestInvariants(t *testing.T) {
	if err := searched(20000); err != nil {
		t.Fatal(err)
	}
}

func FuzzInvariants(f *testing.F) {
	f.Add([]byte("some goroutines want the same lock"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		if err := newWorld(choices).run(); err != nil {
			t.Fatal(err)
		}
	})
}
