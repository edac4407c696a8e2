package queues

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/waitq"
)

// world is a state in which moves happen.
type world struct {
	*state
	m      *Model
	store  store
	broken Property // the first that a move broke
	did    Actions  // what the queues decided
	owners owner    // so far
}

func (w *world) newOwner() owner {
	w.owners++
	return w.owners
}

func newWorld(m *Model) *world {
	s := newState(m)
	w := &world{state: s, m: m, store: store{s}}
	for _, p := range s.processes {
		w.forget(p)
	}
	return w
}

// forget begins a new queue, as the client does for one that is idle.
func (w *world) forget(p *process) { p.queue = waitq.New[*goroutine](ttl, p.contention) }

func (w *world) breaks(p Property) {
	if w.broken == "" {
		w.broken = p
	}
}

// step applies an event to a queue, and returns the action that is left to the caller.
func (w *world) step(p *process, e waitq.Event[*goroutine]) (left waitq.Action[*goroutine], ok bool) {
	var marked *waitq.Waiter[*goroutine]
	for x := p.queue.Foremost(); x != nil && x != marked && x.Of.ended; x = p.queue.Foremost() {
		p.queue.Step(waitq.Event[*goroutine]{Kind: waitq.Ended, Waiter: x}, now, nil)
		marked = x
	}
	for _, a := range p.queue.Step(e, now, nil) {
		w.did.add(a)
		switch a.Kind {
		case waitq.Tell, waitq.TellListeners, waitq.TellAll:
		case waitq.Start:
			p.starting++
		case waitq.Refuse:
			a.Waiter.Of.phase, a.Waiter.Of.ended = away, false
		default:
			left, ok = a, true
		}
	}
	if p.queue.Idle() {
		w.forget(p)
	}
	return left, ok
}

// want makes a goroutine ask for the lock, or wait behind others of its process.
func (w *world) want(p *process, g *goroutine) {
	g.rounds--
	g.waiter = &waitq.Waiter[*goroutine]{Of: g}
	if a, _ := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Arrive}); a.Kind == waitq.Try && g.phase == away && p.queue.Phase() == waitq.Trying && !w.tries(p) {
		g.phase = trying
		return
	}
	w.join(p, g, waitq.Event[*goroutine]{Kind: waitq.Join})
}

// tries reports whether a goroutine makes the one attempt of the queue.
func (w *world) tries(p *process) bool {
	return slices.ContainsFunc(p.goroutines, func(g *goroutine) bool { return g.phase == trying })
}

// join makes a goroutine wait, after the event by which it comes to that.
func (w *world) join(p *process, g *goroutine, e waitq.Event[*goroutine]) {
	if p.queue.Len() == 0 {
		p.rank = 0
	}
	g.phase, e.Waiter = queued, g.waiter
	if a, _ := w.step(p, e); a.Kind == waitq.EnterYourself {
		w.enter(p, g)
	}
}

// enter takes the next place in the store's queue, if anybody wants it.
func (w *world) enter(p *process, self *goroutine) {
	a, ok := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Enter, Rank: w.newRank()})
	if !ok {
		return
	}
	if p.rank != 0 && !a.Reserved && p.queue.Rank() != p.rank {
		w.breaks(Turn)
	}
	p.rank = p.queue.Rank()
	if p.place != nil {
		w.breaks(Asker)
	}
	if p.place = (&place{owner: p.reserved, self: self}); a.Reserved {
		p.reserved, p.reservedRank = 0, 0
		return
	}
	p.place.owner = w.newOwner()
	if !w.store.wait(p.place.owner, p.queue.Rank()) {
		w.step(p, waitq.Event[*goroutine]{Kind: waitq.NewReason, Why: waitq.Busy, Pushed: true})
	}
}

// try makes the one attempt of a queue.
func (w *world) try(p *process, g *goroutine) {
	o := w.newOwner()
	if !w.store.try(o) {
		w.join(p, g, waitq.Event[*goroutine]{Kind: waitq.TryRefused, Why: waitq.Busy})
		return
	}
	g.phase, p.rank = away, 0
	got := w.store.delivered(o)
	w.step(p, waitq.Event[*goroutine]{Kind: waitq.TryGranted})
	w.begins(p, g, got)
}

// hear tells a client that its place was granted the lock.
func (w *world) hear(p *process) {
	got := w.store.delivered(p.place.owner)
	p.rank = 0
	a, _ := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Granted})
	switch a.Kind {
	case waitq.Give:
		p.place = nil
		w.begins(p, a.Waiter.Of, got)
		return
	case waitq.Discard:
		w.releases = append(w.releases, got.owner)
	}
	p.place.over = true
}

// begins gives a goroutine a lease that was just granted.
func (w *world) begins(p *process, g *goroutine, got grant) {
	l := &lease{owner: got.owner}
	p.leases = append(p.leases, l)
	for _, p := range w.processes {
		if slices.ContainsFunc(p.goroutines, func(o *goroutine) bool { return o.phase == holding }) {
			w.breaks(Mutex)
		}
	}
	if got.token <= w.token {
		w.breaks(Tokens)
	}
	if g.ended {
		w.breaks(Wanted)
	}
	w.token = got.token
	g.phase, g.ended, g.lease = holding, false, l
}

// leavePlace ends the wait at a place.
func (w *world) leavePlace(p *process) {
	pl := p.place
	p.place = nil
	if !pl.over {
		w.releases = append(w.releases, pl.owner)
	}
	if pl.self == nil {
		w.enter(p, nil)
		return
	}
	if pl.self.phase == queued {
		p.queue.Step(waitq.Event[*goroutine]{Kind: waitq.Ended, Waiter: pl.self.waiter}, now, nil)
	}
	w.step(p, waitq.Event[*goroutine]{Kind: waitq.PlaceOver})
}

// leave takes a goroutine whose context has ended out of the queue.
func (w *world) leave(p *process, g *goroutine) {
	if a, _ := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Leave, Waiter: g.waiter}); a.Kind == waitq.GiveUp && p.place != nil {
		p.place.cancelled = true
	}
	g.phase, g.ended = away, false
}

// refuse makes the store answer that waiting cannot help.
func (w *world) refuse(p *process) {
	w.refusals--
	w.releases = append(w.releases, p.place.owner)
	p.place.over = true
	w.step(p, waitq.Event[*goroutine]{Kind: waitq.Refused})
}
