package queues

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/waitq"
)

// leasing has the steps of leases: they are passed on, released, and over.
type leasing struct{ *world }

// unlock makes a holder leave its lease.
func (w leasing) unlock(p *process, g *goroutine) {
	l := g.lease
	g.phase, g.lease = away, nil
	if l != p.lease {
		l.phase = releasing
		return
	}
	a, _ := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Unlock, Passable: true})
	w.goOn(p, a)
	if l.phase == releasing && !p.queue.Holds() { // no goroutine waits for the release
		p.lease, p.others = nil, append(p.others, l)
	}
}

// goOn carries out what a queue does with a lease that was left.
func (w leasing) goOn(p *process, a waitq.Action[*goroutine]) {
	l := p.lease
	switch a.Kind {
	case waitq.Pass:
		if l.passes++; l.passes > w.m.Bounds.MostPasses && w.store.waiting() {
			w.breaks(Bound)
		}
		w.holds(a.Waiter.Of, l, a.Token)
	case waitq.ReserveTokens:
		l.phase, l.asked = asking, a
	default:
		l.phase = releasing
	}
}

// reserve answers the question for more tokens.
func (w leasing) reserve(p *process) {
	l := p.lease
	asked, waiting := l.asked, w.store.waiting()
	w.store.reserve(l.owner, asked.Token, asked.Count)
	if l.asked = (waitq.Action[*goroutine]{}); !waiting {
		l.passes = 0
	}
	a, _ := w.step(p, waitq.Event[*goroutine]{Kind: waitq.TokensReserved, Token: asked.Token + 1, Count: asked.Count, Waiting: waiting, Passable: true})
	w.goOn(p, a)
}

// release gives a lease back, with a place for the next wait if that is wanted.
func (w leasing) release(p *process, l *lease) {
	l.phase = released
	if !w.m.Rejoins || !p.queue.RejoinWanted(l == p.lease) {
		w.store.release(l.owner)
		p.contention.Released(now)
		return
	}
	next, rank := w.newOwner(), w.newRank()
	if w.store.rejoin(l.owner, next, rank, w.spare(p)) {
		l.next, l.rank = next, rank
	}
}

// rejoin keeps the place that was taken with a release.
func (w leasing) rejoin(p *process, l *lease) {
	l.phase = rejoined
	if l.next == 0 {
		return
	}
	if a, refused := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Reserve, Rank: l.rank, Own: l == p.lease}); refused && a.Kind == waitq.GiveUp {
		w.releases = append(w.releases, l.next)
		return
	}
	p.reserved, p.reservedRank = l.next, l.rank
}

// leaseOver forgets a lease that was released.
func (w leasing) leaseOver(p *process, l *lease) {
	if l != p.lease {
		p.others = slices.DeleteFunc(p.others, func(o *lease) bool { return o == l })
		return
	}
	p.lease = nil
	w.step(p, waitq.Event[*goroutine]{Kind: waitq.LeaseOver})
}

// lapse lets time pass for a reserved place.
func (w leasing) lapse(p *process) {
	a, ok := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Lapse})
	if p.queue.Reserved() {
		return
	}
	if ok && a.Kind == waitq.GiveUp {
		w.releases = append(w.releases, p.reserved)
	}
	p.reserved, p.reservedRank = 0, 0
}
