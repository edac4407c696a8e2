package waitq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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

	leases int // that goroutines of this process have
}

type placeRecord struct {
	self      *Waiter[int] // nil: a goroutine waits there for the queue
	cancelled bool
	done      bool // the wait has ended
}

func newWorld(choices []byte) *world {
	w := &world{choices: choices, now: clock.Instant(time.Hour), wall: 1e15}
	w.q = New[int](10*time.Second, new(Contention))
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
			func() { w.step(Event[int]{Kind: TryGranted, Waiter: x}) },
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
				func() { w.step(Event[int]{Kind: Granted}) },
				func() { w.step(Event[int]{Kind: Refused}) })
		}
		if p.done || p.cancelled || p.self != nil && p.self.ended {
			events = append(events, w.leavePlace)
		}
	}
	if w.leases > 0 {
		events = append(events, func() { w.leases--; w.reserve() }, func() { w.leases-- })
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
		w.step(Event[int]{Kind: TryGranted, Waiter: w.tries[0]})
	case w.started > 0:
		w.enter()
	case w.place != nil && (w.place.done || w.place.cancelled || w.place.self != nil && w.place.self.ended):
		w.leavePlace()
	case w.place != nil:
		w.step(Event[int]{Kind: Granted})
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

func (w *world) leavePlace() {
	p := w.place
	w.place = nil
	if p.self != nil {
		w.step(Event[int]{Kind: PlaceOver})
	} else {
		w.step(Event[int]{Kind: Enter})
	}
}

func (w *world) reserve() {
	w.wall += 1e3
	w.step(Event[int]{Kind: Reserve})
}

// step steps the queue with an event, and carries out its actions.
func (w *world) step(e Event[int]) {
	e.Rank = w.wall
	who := 0
	if e.Waiter != nil {
		who = e.Waiter.Of
	}
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
	}
	if e.Kind == Granted || e.Kind == TryGranted {
		w.rank = 0
		if e.Kind == TryGranted || w.firstLive() != nil {
			w.leases++
		}
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
	case Give:
		w.answer(a)
	}
}

// answer gives a lease to a waiter, which must be the first that is not about to leave.
func (w *world) answer(a Action[int]) {
	if first := w.firstLive(); a.Waiter != first {
		w.flaw("%d gets the lease, and is not the first waiter that is not about to leave", a.Waiter.Of)
	}
	w.drop(a.Waiter)
	w.place = nil
}

// check checks the invariants that hold between two events.
func (w *world) check() {
	asks := len(w.tries) + w.started
	if w.place != nil {
		asks++
	}
	if asks > 1 {
		w.flaw("%d ask the store, want one at most", asks)
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
		if i >= len(w.order) || w.order[i] != x {
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
// or given up.
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
