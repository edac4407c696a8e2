package queues

import (
	"slices"
)

// move is something that can happen to a process and, if it is not nil, to a goroutine.
type move struct {
	what string
	p    *process
	g    *goroutine
	do   func()
}

// moves returns all moves that are possible, in an order that depends only on the state.
func (w *world) moves() (all []move) {
	add := func(p *process, g *goroutine, what string, do func()) { all = append(all, move{what, p, g, do}) }
	for i, o := range w.releases {
		add(nil, nil, "the release of what nobody wants arrives", func() {
			w.releases = slices.Delete(w.releases, i, i+1)
			w.store.release(o)
		})
	}
	for _, p := range w.processes {
		for _, g := range p.goroutines {
			switch {
			case g.phase == away && g.rounds > 0:
				add(p, g, "wants the lock", func() { w.want(p, g) })
			case g.phase == trying:
				add(p, g, "asks the store once", func() { w.try(p, g) })
			case g.phase == holding:
				add(p, g, "leaves its lease", func() { leasing{w}.unlock(g) })
			case g.phase == queued && g.ended && (p.place == nil || p.place.self != g):
				add(p, g, "leaves the queue", func() { w.leave(p, g) })
			case g.phase == queued && !g.ended && w.ends > 0:
				add(p, g, "its context ends", func() { w.ends--; g.ended = true })
			}
		}
		if p.starting > 0 {
			add(p, nil, "asks the store for its queue", func() { p.starting--; w.enter(p, nil) })
		}
		if pl := p.place; pl != nil {
			if !pl.over && w.store.granted(pl.owner) {
				add(p, nil, "learns that it was granted the lock", func() { w.hear(p) })
			}
			if !pl.over && w.refusals > 0 {
				add(p, nil, "learns that waiting cannot help", func() { w.refuse(p) })
			}
			if pl.over || pl.cancelled || pl.self != nil && (pl.self.ended || pl.self.phase != queued) {
				add(p, nil, "gives its place up", func() { w.leavePlace(p) })
			}
		}
		if p.queue.Reserved() {
			add(p, nil, "has not used its reserved place for a while", func() { leasing{w}.lapse(p) })
		}
		for _, l := range p.leases {
			switch l.phase {
			case releasing:
				add(p, nil, "releases the lock", func() { leasing{w}.release(p, l) })
			case released:
				add(p, nil, "learns that the lock was released", func() { leasing{w}.rejoin(p, l) })
			case rejoined:
				add(p, nil, "has no lease any more", func() { leasing{w}.leaseOver(p, l) })
			}
		}
	}
	return all
}

// check checks what must hold between two moves, and at the end.
func (w *world) check(over bool) Property {
	for _, p := range w.processes {
		asks := p.starting
		if w.tries(p) {
			asks++
		}
		if p.place != nil {
			asks++
		}
		if asks > 1 {
			w.breaks(Asker)
		}
		if p.place != nil && !p.place.cancelled && !p.place.over && p.queue.Len() == 0 {
			w.breaks(Unused)
		}
		for _, g := range p.goroutines {
			if over && g.phase != away {
				w.breaks(Served)
			}
		}
	}
	if _, _, held := w.lock.Holder(now); over && (held || w.store.waiting()) {
		w.breaks(Left)
	}
	return w.broken
}
