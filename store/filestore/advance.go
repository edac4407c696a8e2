package filestore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// advance hands a free lock to the waiters whose turn has come. It skips waiters
// whose process is dead and removes their places. changed reports whether the row
// must be written.
func (t *step) advance(name string, r row) (_ row, changed bool, err error) {
	before, after, turns := turnsOfTheLiving(r.Record, t.now, func(owner string) bool {
		return t.s.push.presence(r.Waiters[owner].Socket) == dead
	})
	changed = len(turns) > 0 || len(before.Queue) != len(r.Queue)
	if drawn := int(after.Token - before.Token); drawn > 0 {
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
		if len(after.Queue) > 0 && len(after.Queue) != len(r.Queue) {
			t.s.bells.ring(name, after.Queue[0].Owner) // it may be the new head
		}
	})
	return r.with(after), changed, nil
}

// turnsOfTheLiving is rule.Advance without the waiters that turn out to be gone.
// before is r without their places.
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
