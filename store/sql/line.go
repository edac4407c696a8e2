package sqlstore

import (
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// advance hands a lock that is free to those whose turn has come, and says
// whether there were any. What it changes is to be written.
func (t *step) advance(name string, r rule.Record) (_ rule.Record, handed bool, err error) {
	after, turns := rule.Advance(r, 0, t.now)
	if drawn := int64(after.Token - r.Token); drawn > 0 {
		floor, err := t.draw(drawn)
		if err != nil {
			return rule.Record{}, false, err
		}
		after, turns = rule.Advance(r, floor, t.now)
	}
	next := make([]string, 0, len(turns)+1)
	for _, turn := range turns {
		next = append(next, turn.Owner)
	}
	if len(after.Line) > 0 && len(after.Line) != len(r.Line) {
		next = append(next, after.Line[0].Owner) // who may be the first now
	}
	if len(next) > 0 {
		t.committed = append(t.committed, func() { t.s.bells.ring(name, next) })
	}
	return after, len(turns) > 0, nil
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
	position int // in the line, as far as it is known; 0: not yet
}

// hang gives owner a bell, until remove is called. Then the turn to look often
// is another's.
func (b *bells) hang(name, owner string) (one *bell, remove func()) {
	one = &bell{c: make(chan struct{}, 1), owner: owner}
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

// ring wakes the owners, as far as they wait here for the lock.
func (b *bells) ring(name string, owners []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.of[name] {
		if slices.Contains(owners, one.owner) {
			one.ring()
		}
	}
}

func (b *bell) ring() {
	select {
	case b.c <- struct{}{}:
	default: // it is about to look
	}
}
