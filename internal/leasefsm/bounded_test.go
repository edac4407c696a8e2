package leasefsm

import (
	"testing"
	"time"
)

// Bounds that are set later count from then.
func TestBoundedLater(t *testing.T) {
	c := Config{TTL: 30 * time.Second, Notice: time.Second, Renew: 10 * time.Second}
	l := held(c)
	for at10 := 10 * time.Second; at10 <= time.Minute; at10 += 10 * time.Second {
		l = l.Step(RenewalSent, 0, at(at10)).Step(Renewed, at(at10), at(at10))
	}
	bounded := l.Bounded(5*time.Second, c.Renew, at(time.Minute)).Step(Tick, 0, at(time.Minute))
	if next, live := bounded.Next(); !live || next != at(64*time.Second) || bounded.Due(at(63*time.Second)) {
		t.Errorf("bounded to 5s after a minute: next step at %v, live %v, want at 1m4s, when its holder is notified", next, live)
	}
	if b := bounded.Step(Tick, 0, at(64*time.Second)); b.State() != Lost || b.Cause() != HeldMax {
		t.Errorf("after that: %v, %v, want it lost by its longest hold", b.State(), b.Cause())
	}
	if free := bounded.Bounded(0, c.Renew, at(time.Minute)); free.Until() != l.Until() {
		t.Errorf("without a bound again it is valid until %v, want %v", free.Until(), l.Until())
	}
	if once := l.Bounded(0, 0, at(time.Minute)); once.Due(at(80*time.Second)) || once.Until() != l.Until() {
		t.Errorf("without renewals one is due, or validity changed from %v to %v", l.Until(), once.Until())
	}
}
