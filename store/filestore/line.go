package filestore

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// advance hands a lock that is free to those whose turn has come. Waiters whose
// process is gone lose their place instead. changed says whether there were any
// of either; then the row is to be written.
func (t *step) advance(name string, r row) (_ row, changed bool, err error) {
	before, after, turns := turnsOfTheLiving(r.Record, t.now, func(owner string) bool {
		return t.s.push.presence(r.Waiters[owner].Socket) == dead
	})
	changed = len(turns) > 0 || len(before.Line) != len(r.Line)
	if drawn := int64(after.Token - before.Token); drawn > 0 {
		floor, err := t.draw(drawn)
		if err != nil {
			return row{}, false, err
		}
		after, turns = rule.Advance(before, floor, t.now)
	}
	now := t.now
	t.committed = append(t.committed, func() {
		for _, turn := range turns {
			w := r.Waiters[turn.Owner]
			m := message{Lock: name, Wait: w.Wait, Token: turn.Token, Expiry: now.Add(turn.ExpiresIn)}
			t.s.push.send(w.Socket, m)
			t.s.bells.ring(name, turn.Owner)
		}
		if len(after.Line) > 0 && len(after.Line) != len(r.Line) {
			t.s.bells.ring(name, after.Line[0].Owner) // who may be the first now
		}
	})
	return r.with(after), changed, nil
}

// turnsOfTheLiving is rule.Advance without those who turn out to be gone when
// their turn has come: before is the record without their places.
func turnsOfTheLiving(r rule.Record, now clock.Instant, gone func(owner string) bool) (before, after rule.Record, turns []rule.Turn) {
	for {
		after, turns = rule.Advance(r, 0, now)
		found := false
		for _, turn := range turns {
			if gone(turn.Owner) {
				r, _ = rule.Leave(r, turn.Owner, now)
				found = true
			}
		}
		if !found {
			return r, after, turns
		}
	}
}

// bells wake those of this process who wait. They would find out by themselves,
// as those of other processes do, only later. The zero value is ready for use.
type bells struct {
	mu sync.Mutex
	of map[string][]*bell // by the lock's name
}

// bell is one waiter's.
type bell struct {
	c        chan struct{}
	owner    string
	wait     string  // its name
	handed   message // what it was told last, if that was of a lease
	position int     // in the line, as far as it is known; 0: not yet
}

// hang gives owner a bell, until remove is called. Then the turn to look often
// is another's.
func (b *bells) hang(name, owner string) (one *bell, remove func()) {
	one = &bell{c: make(chan struct{}, 1), owner: owner, wait: strings.ToLower(rand.Text()[:16])}
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
		if next != nil { // the others are about to ask anyway
			next.ring()
		}
	}
}

// stands notes the position, and says whether nobody of this process stands
// before it: one of them is enough to look often.
func (b *bells) stands(name string, one *bell, position int) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.position = position
	return !slices.ContainsFunc(b.of[name], func(o *bell) bool { return 0 < o.position && o.position < position })
}

// ring wakes owner, if it waits here for the lock.
func (b *bells) ring(name, owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.of[name] {
		if one.owner == owner {
			one.ring()
		}
	}
}

// answer wakes the wait that m is meant for, if it is still there.
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

// handed is what the waiter was told, once.
func (b *bells) handed(one *bell) (m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, one.handed = one.handed, message{}
	return m
}

func (b *bell) ring() {
	select {
	case b.c <- struct{}{}:
	default: // it is about to look
	}
}
