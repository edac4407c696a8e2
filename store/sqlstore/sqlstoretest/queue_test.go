package sqlstoretest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// The procedures keep the queue of waiters as package rule says, and hand the lock to the same
// waiter.
func TestQueueFollowsTheRule(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		p := newProcedures(t, on, nil)
		for _, steps := range queueStories {
			if err := p.line(steps); err != nil {
				t.Error(err)
			}
		}
		steps := queueSteps(1, 25)
		rapid.Check(t, func(t *rapid.T) {
			if err := p.line(steps.Draw(t, "steps")); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// queueStep is one call, or the passing of time.
type queueStep struct {
	op    string
	owner int
	d     time.Duration
	barge bool
}

func queueSteps(least, most int) *rapid.Generator[[]queueStep] {
	one := rapid.Custom(func(t *rapid.T) queueStep {
		return queueStep{
			op:    rapid.SampledFrom([]string{"try", "wait", "wait", "wait", "look", "release", "release", "rejoin", "rejoin", "leave", "renew", "pass"}).Draw(t, "op"),
			owner: rapid.IntRange(0, 4).Draw(t, "owner"),
			d:     rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second}).Draw(t, "time"),
			barge: rapid.IntRange(0, 3).Draw(t, "barge") == 0,
		}
	})
	return rapid.SliceOfN(one, least, most)
}

// queueStories has steps that random lists seldom have in this order.
var queueStories = [][]queueStep{
	// A lease that is over is not released, also if somebody waits.
	{{op: "try", d: short}, {op: "wait", owner: 1, d: long}, {op: "pass", d: 2 * short}, {op: "release"}},
	{{op: "try", d: short}, {op: "wait", owner: 1, d: long}, {op: "pass", d: 2 * short}, {op: "rejoin", d: long}},
	// The room of a waiter that barges is left, and the next waiter is still before others.
	{{op: "try", d: short}, {op: "wait", owner: 1, d: long, barge: true}, {op: "wait", owner: 2, d: long}, {op: "pass", d: 2 * short}, {op: "wait", owner: 3, d: long}},
	// Somebody waits for a free lock, since a waiter that barges made no use of it.
	{{op: "try", d: long}, {op: "wait", owner: 1, d: short, barge: true}, {op: "wait", owner: 2, d: long}, {op: "release"}, {op: "pass", d: 2 * short}, {op: "try", owner: 3, d: long}},
	// A look refreshes a place.
	{{op: "try", d: long}, {op: "wait", owner: 1, d: short}, {op: "pass", d: short / 2}, {op: "look", owner: 1, d: short}},
}

// line takes the procedures and the rule through the steps, and returns the first
// difference.
func (p *procedures) line(steps []queueStep) error {
	const lock, start = "queue", clock.Instant(1_790_000_000_000_000_000)
	if err := p.Begin(start); err != nil {
		return err
	}
	now, r := start, rule.Record{}
	floor := func() fence.Token { return fence.Token(now / 1000) }
	trace := ""
	for i, s := range steps {
		owner := fmt.Sprint("owner", s.owner)
		trace += fmt.Sprintf("%d. %s %s %v barge %v\n", i, s.op, owner, s.d, s.barge)
		var err error
		same := true
		switch s.op {
		case "pass":
			now = now.Add(s.d)
			err = p.Pass(s.d)
		case "try", "wait":
			ask := rule.Ask{Spec: rule.Mutex, Owner: owner, TTL: s.d, Floor: floor()}
			if s.op == "wait" {
				ask.Fair, ask.Wait = !s.barge, s.d
			}
			if s.op == "try" || !s.barge {
				r, _ = rule.Advance(r, floor(), now)
			}
			var want rule.Answer
			r, want = rule.Admit(r, ask, now)
			var got reply
			got, err = p.ask(lock, owner, "", s.d, s.op == "wait", s.op == "wait" && s.barge)
			switch want.Verdict {
			case rule.Granted:
				same = got.verdict == map[bool]string{true: "again", false: "granted"}[want.Again] && got.token == int64(want.Token) && got.left == want.ExpiresIn
			case rule.Busy:
				same = got.verdict == "busy" && got.position == want.Position && got.owner == want.Blocker.Owner
			}
			trace += fmt.Sprintf("   %+v; the rule: %+v\n", got, want)
		case "look":
			// It does nothing for an owner without a place.
			if slices.ContainsFunc(rule.Expire(r, now).Queue, func(p rule.Place) bool { return p.Owner == owner }) {
				r = rule.Expire(r, now)
				free := len(r.Holds) == 0
				if free {
					r, _ = rule.Advance(r, floor(), now)
				}
				if slices.ContainsFunc(r.Queue, func(p rule.Place) bool { return p.Owner == owner }) {
					i := slices.IndexFunc(r.Queue, func(p rule.Place) bool { return p.Owner == owner })
					// A look refreshes the place only if it writes anyway, or an eighth of
					// the TTL is over.
					if left := r.Queue[i].Expiry.Sub(now); left <= s.d-s.d/8 || free {
						r.Queue = slices.Clone(r.Queue)
						r.Queue[i].Expiry = max(r.Queue[i].Expiry, now.Add(s.d))
					}
				}
				_, err = p.one("await", "verdict", []byte(lock), owner, micros(s.d), int64(0), int64(0))
			}
		case "release", "leave":
			tombstone := time.Duration(0)
			var want rule.Answer
			r, want = rule.Release(r, rule.End{Owner: owner}, now)
			r, _ = rule.Advance(r, floor(), now)
			var done bool
			done, err = p.release(lock, owner, tombstone)
			same = done == (want.Verdict == rule.Done)
		case "rejoin":
			var want rule.Answer
			r, want = rule.Release(r, rule.End{Owner: owner}, now)
			r, _ = rule.Advance(r, floor(), now)
			passed := want.Verdict == rule.Done && len(r.Holds) > 0
			if passed {
				r, _ = rule.Admit(r, rule.Ask{Spec: rule.Mutex, Owner: owner, TTL: s.d, Floor: floor(), Fair: !s.barge, Wait: s.d}, now)
			}
			var done, standing bool
			done, standing, err = p.rejoin(lock, owner, s.d, s.barge)
			same = done == (want.Verdict == rule.Done) && standing == passed
		case "renew":
			var want rule.Answer
			r, want = rule.Renew(r, owner, s.d, now)
			var done bool
			done, err = p.renew(lock, owner, s.d)
			same = done == (want.Verdict == rule.Done)
		}
		if err != nil {
			return fmt.Errorf("%s%w", trace, err)
		}
		got, err := p.queueState(lock)
		if err != nil {
			return err
		}
		if want := ruleState(rule.Expire(r, now), now); !same || got != want {
			return fmt.Errorf("%s   the rows: %s\n   the rule: %s\n   same answers: %v", trace, got, want, same)
		}
	}
	return nil
}

// queueState formats the lease and the places of a lock.
func (p *procedures) queueState(lock string) (string, error) {
	rows, err := p.call("inspect", "position, owner, token, ends_in", []byte(lock), 100)
	text := ""
	for _, row := range rows {
		text += fmt.Sprintf("%s %s %s %v; ", row[0], row[1], row[2], span(row[3]))
	}
	return text, err
}

func ruleState(r rule.Record, now clock.Instant) string {
	text := ""
	for _, h := range r.Holds {
		text += fmt.Sprintf("0 %s %d %v; ", h.Owner, h.Token, h.Expiry.Sub(now))
	}
	for i, p := range r.Queue {
		text += fmt.Sprintf("%d %s 0 %v; ", i+1, p.Owner, p.Expiry.Sub(now))
	}
	return text
}
