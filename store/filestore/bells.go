package filestore

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// bells wake the waiters of this process early. Without them they would still
// find out, as waiters of other processes do, but later. The zero value is ready
// for use.
type bells struct {
	mu sync.Mutex
	of map[string][]*bell // by the lock's name
}

// bell is the bell of one waiter.
type bell struct {
	c        chan struct{}
	owner    string
	wait     string  // its name
	handed   message // the last message about a lease
	position int     // in the queue; 0 if not yet known
	reserved bool    // no waiter has claimed it yet
}

// hang adds a bell for owner. remove removes it, and wakes the next waiter of the
// process, which then has to read the row often. A bell that is reserved is for a waiter that
// is yet to come; until it claims the bell, another waiter of the process has to read the row.
func (b *bells) hang(name, owner string, reserved bool) (one *bell, remove func()) {
	one = &bell{c: make(chan struct{}, 1), owner: owner, wait: strings.ToLower(rand.Text()[:16]), reserved: reserved}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[string][]*bell)
	}
	b.of[name] = append(b.of[name], one)
	return one, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		rest := slices.DeleteFunc(b.of[name], func(o *bell) bool { return o == one })
		if b.of[name] = rest; len(rest) == 0 {
			delete(b.of, name)
			return
		}
		var next *bell
		for _, o := range rest {
			if o.position > 0 && (next == nil || o.position < next.position) {
				next = o
			}
		}
		if next != nil { // waiters without a known position are about to ask anyway
			next.ring()
		}
	}
}

// claim says that the waiter of the bell has come.
func (b *bells) claim(one *bell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.reserved = false
}

// stands records the position of a waiter. It reports whether no other waiter of
// this process is in front: only the first of them has to read the row often.
func (b *bells) stands(name string, one *bell, position int) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.position = position
	return !slices.ContainsFunc(b.of[name], func(o *bell) bool { return 0 < o.position && o.position < position })
}

// share tells the other waiters of this process what reader has read: it records their
// positions, and wakes those that have no place any more, mostly because the lock was
// handed to them, and the first of them.
func (b *bells) share(name string, r rule.Record, reader *bell) {
	positions := make(map[string]int, len(r.Queue))
	for i, p := range r.Queue {
		positions[p.Owner] = i + 1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var first *bell
	for _, o := range b.of[name] {
		if o.reserved {
			continue
		}
		o.position = positions[o.owner]
		switch {
		case o.position == 0 && o != reader:
			o.ring()
		case o.position > 0 && (first == nil || o.position < first.position):
			first = o
		}
	}
	if first != nil && first != reader {
		first.ring()
	}
}

// ring wakes owner, if it waits in this process for the lock.
func (b *bells) ring(name, owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.of[name] {
		if one.owner == owner {
			one.ring()
		}
	}
}

// answer wakes the waiter that m is addressed to, if it still waits.
func (b *bells) answer(m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.of[m.Lock] {
		if one.wait == m.Wait {
			one.handed = m
			one.ring()
		}
	}
}

// handed returns the last message for the waiter, once.
func (b *bells) handed(one *bell) (m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, one.handed = one.handed, message{}
	return m
}

// waiter says how to notify the waiter of b, in the process that has the socket. Without a socket
// it is the zero value.
func (b *bell) waiter(socket string) waiter {
	if socket == "" {
		return waiter{}
	}
	return waiter{Socket: socket, Wait: b.wait}
}

func (b *bell) ring() {
	select {
	case b.c <- struct{}{}:
	default: // it is about to look
	}
}
