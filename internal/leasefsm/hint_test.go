package leasefsm

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

const t0 = clock.Instant(time.Hour)

func held(c Config) Lease { return New(c).Step(Granted, t0, t0) }

func at(d time.Duration) clock.Instant { return t0.Add(d) }

// due returns how long after the grant l is due for a renewal.
func due(t *testing.T, l Lease) time.Duration {
	t.Helper()
	next, live := l.Next()
	if !live || !l.Due(next) || l.Due(next-1) {
		t.Fatalf("%v, live %v, due after %v: %v, and just before: %v, want true and false", l.State(), live, next.Sub(t0), l.Due(next), l.Due(next-1))
	}
	return next.Sub(t0)
}

// A hint makes a renewal due at once. Another hint has no effect before the next regular
// renewal.
func TestHint(t *testing.T) {
	const second = time.Second
	l := held(Config{TTL: 30 * second, Notice: second, Renew: 10 * second})
	renewed := func(l Lease, from, until time.Duration) Lease {
		return l.Step(RenewalSent, 0, at(from)).Step(Renewed, at(from), at(until))
	}
	hinted := func(l Lease, after time.Duration) Lease { return l.Step(Hinted, 0, at(after)) }

	if l = hinted(hinted(l, 2*second), 3*second); due(t, l) != 2*second {
		t.Errorf("after two hints, due after %v, want 2s, at the first", due(t, l))
	}
	if l = renewed(l, 3*second, 4*second); due(t, l) != 13*second {
		t.Errorf("after a renewal that began at 3s, due after %v, want 13s", due(t, l))
	}
	for after := range 9 {
		if l = hinted(l, 4*second+time.Duration(after)*second); due(t, l) != 13*second {
			t.Errorf("after one hint too many, due after %v, want 13s", due(t, l))
		}
	}
	l = renewed(l, 13*second, 14*second)
	if l := hinted(l, 20*second); due(t, l) != 20*second {
		t.Errorf("after a hint at 20s, due after %v, want 20s", due(t, l))
	}
	// The result of the renewal under way may be older than the hint.
	l = hinted(l.Step(RenewalSent, 0, at(23*second)), 24*second)
	if l.Due(at(24 * second)) {
		t.Error("a second renewal is due while one is under way")
	}
	if l := l.Step(Renewed, at(23*second), at(25*second)); due(t, l) != 25*second {
		t.Errorf("after a hint during a renewal, due after %v, want 25s, when it ends", due(t, l))
	}
	if l := l.Step(RenewalDenied, 0, at(25*second)).Step(Hinted, 0, at(26*second)); l.State() != Lost || l.Due(at(26*second)) {
		t.Errorf("after a hint for a denied lease: %v, due %v, want it lost and not due", l.State(), l.Due(at(26*second)))
	}
	if l := hinted(held(Config{TTL: 30 * second, Notice: second}), second); l.Due(at(second)) {
		t.Error("a hint makes a renewal due of a lease that is never renewed")
	}
}
