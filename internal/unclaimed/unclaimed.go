// Package unclaimed keeps the places in queues that were made with a release, until a Wait
// claims them.
package unclaimed

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Places are places of type P. They are safe for concurrent use, and the zero value is ready
// for use.
type Places[P any] struct {
	mu      sync.Mutex
	entries map[key]*entry[P]
	closed  bool
}

type key struct{ name, owner string }

type entry[P any] struct {
	place P
	timer *time.Timer
}

func keyOf(l store.Lease) key { return key{l.Name, l.Owner} }

// Put keeps the place of a lease until it is taken. If that has not happened after the TTL,
// Put removes it and calls expired, on a goroutine of its own. Put returns false, and keeps
// nothing, after Close.
func (p *Places[P]) Put(l store.Lease, place P, expired func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.entries == nil {
		p.entries = make(map[key]*entry[P])
	}
	p.entries[keyOf(l)] = &entry[P]{place, time.AfterFunc(l.TTL, func() {
		if _, ok := p.Take(l); ok {
			expired()
		}
	})}
	return true
}

// Take removes the place of a lease and returns it, if there is one.
func (p *Places[P]) Take(l store.Lease) (place P, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[keyOf(l)]
	if e == nil {
		return place, false
	}
	e.timer.Stop()
	delete(p.entries, keyOf(l))
	return e.place, true
}

// Close removes all places and returns them. It may be called twice.
func (p *Places[P]) Close() (all []P) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, e := range p.entries {
		e.timer.Stop()
		all = append(all, e.place)
	}
	p.entries = nil
	return all
}
