package leasefsm

import (
	"testing"
	"time"
)

// due returns how long after the grant l is to be renewed.
func due(t *testing.T, l Lease) time.Duration {
	t.Helper()
	next, live := l.Next()
	if !live || !l.Due(next) || l.Due(next-1) {
		t.Fatalf("%v, due at %v: %v", l.State(), next.Sub(t0), l.Due(next))
	}
	return next.Sub(t0)
}

// A hint has a lease renewed at once, and the next one only after a renewal that was due
// anyway.
func TestHint(t *testing.T) {
	const second = time.Second
	l := held(Config{TTL: 30 * second, Notice: second, Renew: 10 * second})
	renewed := func(l Lease, from, until time.Duration) Lease {
		return l.Step(RenewalSent, 0, at(from)).Step(Renewed, at(from), at(until))
	}
	hinted := func(l Lease, after time.Duration) Lease { return l.Step(Hinted, 0, at(after)) }

	if l = hinted(hinted(l, 2*second), 3*second); due(t, l) != 2*second {
		t.Errorf("due after %v", due(t, l))
	}
	if l = renewed(l, 3*second, 4*second); due(t, l) != 13*second {
		t.Errorf("due after %v, the last one began after 3 s", due(t, l))
	}
	for after := range 9 {
		if l = hinted(l, 4*second+time.Duration(after)*second); due(t, l) != 13*second {
			t.Errorf("due after %v by a hint too many", due(t, l))
		}
	}
	l = renewed(l, 13*second, 14*second)
	if l := hinted(l, 20*second); due(t, l) != 20*second {
		t.Errorf("due after %v", due(t, l))
	}
	// What the renewal under way says may be older than the hint.
	l = hinted(l.Step(RenewalSent, 0, at(23*second)), 24*second)
	if l.Due(at(24 * second)) {
		t.Error("two renewals at a time")
	}
	if l := l.Step(Renewed, at(23*second), at(25*second)); due(t, l) != 25*second {
		t.Errorf("due after %v", due(t, l))
	}
	if l := l.Step(RenewalDenied, 0, at(25*second)).Step(Hinted, 0, at(26*second)); l.State() != Lost || l.Due(at(26*second)) {
		t.Errorf("%v", l.State())
	}
	if l := hinted(held(Config{TTL: 30 * second, Notice: second}), second); l.Due(at(second)) {
		t.Error("a lease that is never renewed is renewed")
	}
}
