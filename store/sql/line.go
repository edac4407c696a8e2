package sqlstore

import (
	"sync"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// advance hands a lock that is free to those whose turn has come, and says
// whether there were any. What it changes is to be written.
func (t *step) advance(r rule.Record) (_ rule.Record, handed bool, err error) {
	after, turns := rule.Advance(r, 0, t.now)
	if drawn := int64(after.Token - r.Token); drawn > 0 {
		floor, err := t.draw(drawn)
		if err != nil {
			return rule.Record{}, false, err
		}
		after, turns = rule.Advance(r, floor, t.now)
	}
	for _, turn := range turns {
		t.next = append(t.next, turn.Owner)
	}
	if len(after.Line) > 0 && len(after.Line) != len(r.Line) {
		t.next = append(t.next, after.Line[0].Owner) // who may be the first now
	}
	return after, len(turns) > 0, nil
}

// bells wake those of this process who wait. They would find out by themselves,
// as those of other processes do, only later. The zero value is ready for use.
type bells struct {
	mu sync.Mutex
	of map[string]chan struct{} // by owner
}

// hang gives owner a bell, until remove is called.
func (b *bells) hang(owner string) (bell <-chan struct{}, remove func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = make(map[string]chan struct{})
	}
	b.of[owner] = c
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.of[owner] == c {
			delete(b.of, owner)
		}
	}
}

// ring wakes the owners, as far as they wait here.
func (b *bells) ring(owners []string) {
	if len(owners) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, owner := range owners {
		select {
		case b.of[owner] <- struct{}{}:
		default: // it is about to look, or waits elsewhere
		}
	}
}
