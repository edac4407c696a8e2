package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// changes turns looks at a store into events. It is a function of the looks: it does no I/O
// and reads no clock.
type changes struct {
	leases map[leaseKey]*lease
	round  uint64 // of the last look
	last   time.Time
	whole  bool // a look at all locks has been taken: what is new after it was acquired since
	// counts reports that the store shows how much of a lease is left. Otherwise it shows the TTL.
	counts bool
	ids    uint64
}

// leaseKey identifies a lease. Its token does not: an owner can draw further ones.
type leaseKey struct{ name, owner string }

// lease is what is known of a lease.
type lease struct {
	of      store.Holding // as it was seen last, with its kind
	at      time.Time     // when that was
	longest time.Duration // the largest ExpiresIn seen
	looks   int
	round   uint64
	held    bool // it was seen to hold the lock, and not only to be undecided
	broken  bool // Broken was told
}

// look is what one look at a store found.
type look struct {
	began, ended time.Time
	states       []store.State
	whole        bool // states are all locks
	// broken has who broke a lease of a lock last, for the locks that were inspected.
	broken map[string]*store.Broken
}

// ending returns the names of the locks of which a lease ended, or was broken, since the last
// look: State.Broken of these tells why.
func (c *changes) ending(states []store.State) []string {
	there := make(map[leaseKey]bool, len(c.leases))
	names := map[string]bool{}
	for _, s := range states {
		for _, h := range leasesOf(s) {
			key := leaseKey{s.Name, h.Holder.Owner}
			there[key] = true
			if l := c.leases[key]; h.Holder.Broken && (l == nil || !l.broken) {
				names[s.Name] = true
			}
		}
	}
	for key := range c.leases {
		if !there[key] {
			names[key.name] = true
		}
	}
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// leasesOf is State.Leases with the kind in each, and without a copy for a mutex.
func leasesOf(s store.State) []store.Holding {
	if s.Held && len(s.Holders) == 0 && len(s.Undecided) == 0 {
		h := s.Holdings()
		h[0].Kind = s.Kind
		return h
	}
	return s.Leases()
}

// step takes what a look found, and returns what has changed since the one before.
func (c *changes) step(l look) []Event {
	if c.leases == nil {
		c.leases = map[leaseKey]*lease{}
	}
	c.round++
	first := !c.whole
	fresh, ended := map[string][]*lease{}, map[string][]Event{}
	var events []Event
	for _, s := range l.states {
		held := len(s.Holdings())
		for i, h := range leasesOf(s) {
			now, acquired := c.see(leaseKey{s.Name, h.Holder.Owner}, h, l.began, i < held)
			if acquired && !first {
				fresh[s.Name] = append(fresh[s.Name], now)
			}
			if h.Holder.Broken && !now.broken {
				now.broken = true
				if !first {
					events = append(events, Event{Kind: Broken, Name: s.Name, Lease: h, Broken: brokenBy(l.broken[s.Name], h)})
				}
			}
		}
	}
	for key, gone := range c.leases {
		if gone.round == c.round || !l.whole && !couldBeOver(gone, l) {
			continue
		}
		delete(c.leases, key)
		if !gone.held || !l.whole {
			continue
		}
		e := c.end(gone, l, l.broken[key.name])
		e.Name, e.Lease = key.name, gone.of
		if e.Cause == CauseBroken && !gone.broken {
			events = append(events, Event{Kind: Broken, Name: key.name, Lease: gone.of, Broken: e.Broken})
		}
		ended[key.name] = append(ended[key.name], e)
	}
	for name, over := range ended {
		next := fresh[name]
		if len(over) == 1 && len(next) == 1 && c.passed(over[0].Kind) && over[0].Lease.Kind.IsMutex() && next[0].of.Kind.IsMutex() {
			events = append(events, Event{Kind: HandedOver, Name: name, Lease: next[0].of, From: &over[0].Lease})
			delete(fresh, name)
			continue
		}
		events = append(events, over...)
	}
	for name, acquired := range fresh {
		for _, a := range acquired {
			events = append(events, Event{Kind: Acquired, Name: name, Lease: a.of})
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(order(a.Kind), order(b.Kind)), cmp.Compare(a.Lease.Token, b.Lease.Token))
	})
	for i := range events {
		c.ids++
		events[i].ID, events[i].Time, events[i].After = c.ids, l.began, c.last
	}
	c.last, c.whole = l.began, c.whole || l.whole
	return events
}

// passed reports whether a lease that ended in that way leaves its lock to the next holder.
func (c *changes) passed(k Kind) bool { return k == Released || k == Over && !c.counts }

// order is the order in which events of one lock are told.
func order(k Kind) int {
	return slices.Index([]Kind{Broken, Lost, Over, Released, HandedOver, Acquired}, k)
}

// see notes that a look found a lease. acquired reports that it was not known to hold the lock.
func (c *changes) see(key leaseKey, h store.Holding, at time.Time, held bool) (l *lease, acquired bool) {
	l = c.leases[key]
	if l == nil {
		l = &lease{}
		c.leases[key] = l
	} else if l.round != c.round && l.of.ExpiresIn != h.ExpiresIn {
		c.counts = true
	}
	acquired = held && !l.held
	l.of, l.at, l.round = h, at, c.round
	l.held = l.held || held
	l.longest = max(l.longest, h.ExpiresIn)
	l.looks++
	return l, acquired
}

// couldBeOver reports whether a lease that a look did not find, since it did not look at all
// locks, has not been seen for longer than it can have lasted.
func couldBeOver(l *lease, now look) bool {
	return l.of.ExpiresIn >= 0 && since(l.at, now.ended) > 2*l.longest
}

// end says how a lease ended. A lease that would have lasted until after this look was ended by
// somebody. One that could have run out was lost if renewals had failed to come before.
func (c *changes) end(l *lease, now look, broken *store.Broken) Event {
	by := brokenBy(broken, l.of)
	gap := since(l.at, now.ended)
	ranOut := l.of.ExpiresIn >= 0 && l.of.ExpiresIn <= gap
	switch {
	case l.broken || by != nil:
		return Event{Kind: Lost, Cause: CauseBroken, Broken: by}
	case ranOut && !l.of.Holder.Unrenewed && c.counts && l.looks > 1 && l.of.ExpiresIn <= l.longest/2:
		return Event{Kind: Lost, Cause: CauseExpired}
	case ranOut, l.of.ExpiresIn >= 0 && !c.counts:
		return Event{Kind: Over}
	}
	return Event{Kind: Released}
}

// brokenBy returns b if it is about the lease h.
func brokenBy(b *store.Broken, h store.Holding) *store.Broken {
	if b == nil || b.Owner != h.Holder.Owner || !h.HasToken(b.Token) {
		return nil
	}
	return b
}

// since is the time from a to b. It counts the time for which the machine was suspended, as
// long as nobody sets the clock.
func since(a, b time.Time) time.Duration {
	return max(b.Sub(a), b.Round(0).Sub(a.Round(0)))
}
