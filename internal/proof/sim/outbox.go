package sim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// put is a call on its way from a client's goroutine to the driver.
type put struct {
	l       *link
	mc      driver.Call
	refused bool // there was no room in the line: it is not
}

// owner is one attempt to acquire.
type owner struct {
	client, worker, lock int
	ttl                  time.Duration
	born                 time.Duration
	holder               *claim         // that has it, or had it last
	least                time.Duration  // it is not to be released before, unless it is lost
	asked                [maxNodes]bool // an acquire was applied there
	told                 [maxNodes]bool // a release was sent there
	revived              bool           // an acquire of it was replayed, and done
}

func (w *world) put(l *link, mc driver.Call, refused bool) {
	w.mu.Lock()
	w.outbox = append(w.outbox, put{l, mc, refused})
	w.mu.Unlock()
	w.wake()
}

// collect takes what the clients' goroutines have left since, in an order that
// does not depend on which of them ran first.
func (w *world) collect() {
	w.mu.Lock()
	puts := w.outbox
	w.outbox, w.spare = w.spare[:0], puts
	w.mu.Unlock()
	slices.SortStableFunc(puts, comparePuts)
	for _, p := range puts {
		k := &call{l: p.l, mc: p.mc, q: w.address(p)}
		w.hist.send(k, p.refused)
		if k.q.Op == quorum.Release {
			w.owners[k.q.owner].told[p.l.n.index] = true
		}
		if p.refused {
			continue
		}
		if p.l.c.paused() {
			p.l.c.unsent = append(p.l.c.unsent, unsent{p.l, k})
		} else {
			p.l.send(k)
		}
	}
	w.judge.look()
	w.judge.sends(puts)
	for _, c := range w.clients {
		if f := c.moving; f != nil && slices.ContainsFunc(puts, func(p put) bool { return p.l.c == c && f.waitsFor(p) }) {
			c.move(f.last())
		}
	}
	clear(puts)
}

func comparePuts(a, b put) int {
	x, y := a.mc.Payload.(*question), b.mc.Payload.(*question)
	return cmp.Or(
		cmp.Compare(a.l.c.index, b.l.c.index),
		cmp.Compare(a.l.n.index, b.l.n.index),
		cmp.Compare(x.from(), y.from()),
		strings.Compare(x.Lease.Name, y.Lease.Name),
		cmp.Compare(store.Rank(x.Lease.Owner), store.Rank(y.Lease.Owner)),
	)
}

// waitsFor says whether a move is to begin with p.
func (f *Fault) waitsFor(p put) bool {
	return p.mc.Payload.(*question).Op == [...]quorum.Op{quorum.Acquire, quorum.Extend}[f.Size%2]
}

// from is the worker a question is about, told by the purpose in the holder's
// description.
func (q *question) from() int {
	if q.worker == 0 {
		purpose := store.DecodeHolder(q.Lease.Owner, q.Lease.Meta).Purpose
		q.worker, _ = strconv.Atoi(strings.TrimPrefix(purpose, "w"))
	}
	return q.worker
}

// address completes a question by what the history calls its owner and lock.
func (w *world) address(p put) *question {
	q := p.mc.Payload.(*question)
	if q.from(); q.owner == 0 {
		q.lock = lockIndex(q.Lease.Name)
		q.owner = w.hist.number(q.Lease.Owner)
		if q.owner == len(w.owners) {
			w.owners = append(w.owners, owner{ttl: q.Lease.TTL, client: p.l.c.index, worker: q.from(), lock: q.lock, born: w.now()})
		}
	}
	if q.To != "" {
		q.to = w.hist.number(q.To)
	}
	return q
}
