package history

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/induct"
)

// A history has what clients saw, and not what the servers did. So steps looks for a run of the
// protocol that package induct proves in which clients see the same. One server is enough for it:
// a majority that keeps the promises looks like one server that never fails. Its grants come in
// the order of their tokens, each as early, and each lease ends as early, as the history allows.
// If the proof has no such step, no other choice of times helps.

// steps finds a step of a mutex, or of a slot of a semaphore, that the proof does not have. Each
// is told once: what comes after it is judged by nothing. A read-write lock is left out, since
// how long a reader kept its token for others is not in the history.
func (h *History) steps(lock int, ttl time.Duration) (found []Violation) {
	if kindOf(h, lock).Shared {
		return nil
	}
	for _, grants := range bySlot(h, lock, h.granted(lock)) {
		if v := h.explain(grants, cmp.Or(ttl, time.Hour)); v != nil {
			found = append(found, *v)
		}
	}
	return found
}

// explain takes the steps of grants that exclude each other.
func (h *History) explain(grants []*Attempt, ttl time.Duration) *Violation {
	slices.SortStableFunc(grants, func(a, b *Attempt) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.From, b.From))
	})
	lasts := func(int) time.Duration { return ttl }
	run := induct.Redlock().Start(induct.World{Nodes: 1, TTL: lasts, Longest: ttl})
	var events []induct.Event
	free := h.Start
	for i, a := range grants {
		l := retelling{h: h, a: a, number: int64(i), ttl: ttl}
		free = l.tell(free)
		events = append(events, l.events...)
	}
	slices.SortStableFunc(events, func(a, b induct.Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range events {
		if err := run.Apply(e); err != nil {
			return refusal(grants, e, err)
		}
	}
	return nil
}

// retelling is what one attempt and the server did.
type retelling struct {
	h      *History
	a      *Attempt
	number int64
	ttl    time.Duration
	events []induct.Event
}

func (l *retelling) step(at clock.Instant, name string, args ...int64) {
	l.events = append(l.events, induct.Event{At: int64(at.Sub(l.h.Start)), Step: name, Args: induct.Args(args...)})
}

// since is an instant as the steps have it.
func (l *retelling) since(at clock.Instant) int64 { return int64(at.Sub(l.h.Start)) }

// tell tells of an attempt at a server that is free from then on, and returns when it is free again.
func (l *retelling) tell(free clock.Instant) clock.Instant {
	const server, majority = 0, 1
	a, n := l.a, l.number
	_, ends, _, used := a.Trusted()
	at := min(max(a.From, free), a.Answered)
	left, until := at, at.Add(l.ttl) // of the request that was granted, and of the validity
	if used && a.Looks[0].Until < until {
		until = a.Looks[0].Until
		left = until.Add(-l.ttl)
	}
	l.step(at, "begin", n)
	l.step(at, "grant", server, n, int64(a.Token), l.since(left))
	if !used { // the lease was over when its holder learned of it, such as by an operator
		l.step(at, "giveUp", n)
		l.step(at, "release", server, n)
		return at
	}
	l.step(at, "win", n, majority, int64(a.Token), l.since(until))
	now := at
	for _, look := range a.Looks {
		left := look.Until.Add(-l.ttl)
		if look.Until <= until || left > ends {
			continue // it was not renewed, or when the lease was over
		}
		for until <= left { // it was renewed before that, too
			now, until = until-1, (until - 1).Add(l.ttl)
			l.extends(now, now)
		}
		now, until = min(max(now, left), look.Done), look.Until
		l.extends(now, left)
	}
	switch {
	case ends >= until:
		l.step(until, "forget", server, n)
		return until
	case ends == a.Freed:
		l.step(max(ends, now), "break", n)
	default:
		l.step(max(ends, now), "giveUp", n)
	}
	l.step(max(ends, now), "release", server, n)
	return max(ends, now)
}

// extends renews the lease with a request that left then.
func (l *retelling) extends(at, left clock.Instant) {
	const server, majority = 0, 1
	l.step(at, "extend", server, l.number, l.since(left))
	l.step(at, "renew", l.number, majority, l.since(left.Add(l.ttl)))
}

var attemptNumber = regexp.MustCompile(`attempt (\d+)`)

// refusal is the violation of a step that the proof refuses.
func refusal(grants []*Attempt, e induct.Event, err error) *Violation {
	v := &Violation{Check: "steps"}
	text := attemptNumber.ReplaceAllStringFunc(err.Error(), func(s string) string {
		n, _ := strconv.Atoi(s[len("attempt "):])
		if a := grants[n]; !slices.Contains(v.Attempts, a) {
			v.Attempts = append(v.Attempts, a)
		}
		return fmt.Sprintf("attempt %v", grants[n].ID)
	})
	v.Lock, v.What = grants[0].Lock, "the proof has no such step, whatever the servers did: "+text
	return v
}
