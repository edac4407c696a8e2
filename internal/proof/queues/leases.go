package queues

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/waitq"
)

// leasing has the steps of leases: they are released, and over.
type leasing struct{ *world }

// unlock makes a holder leave its lease.
func (w leasing) unlock(g *goroutine) {
	g.lease.phase = releasing
	g.phase, g.lease = away, nil
}

// release gives a lease back, with a place for the next wait if that is wanted.
func (w leasing) release(p *process, l *lease) {
	l.phase = released
	if !w.m.Rejoins || !p.queue.RejoinWanted() {
		w.store.release(l.owner)
		p.contention.Released(now)
		return
	}
	next, rank := w.newOwner(), w.newRank()
	if w.store.rejoin(l.owner, next, rank) {
		l.next, l.rank = next, rank
	}
}

// rejoin keeps the place that was taken with a release.
func (w leasing) rejoin(p *process, l *lease) {
	l.phase = rejoined
	if l.next == 0 {
		return
	}
	if a, refused := w.step(p, waitq.Event[*goroutine]{Kind: waitq.Reserve, Rank: l.rank}); refused && a.Kind == waitq.GiveUp {
		w.releases = append(w.releases, l.next)
		return
	}
	p.reserved, p.reservedRank = l.next, l.rank
}

// leaseOver forgets a lease that was released.
func (w leasing) leaseOver(p *process, l *lease) {
	p.leases = slices.DeleteFunc(p.leases, func(o *lease) bool { return o == l })
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
