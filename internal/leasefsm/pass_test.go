package leasefsm

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

const t0 = clock.Instant(time.Hour)

func held(c Config) Lease { return New(c).Step(Granted, t0, t0) }

func at(d time.Duration) clock.Instant { return t0.Add(d) }

// The MaxHold of the next holder counts from the pass. The validity of the store's lease does
// not change.
func TestPassBeginsAHold(t *testing.T) {
	c := Config{TTL: 10 * time.Second, Notice: time.Second, Renew: 3 * time.Second, MaxHold: 4 * time.Second}
	l := held(c)
	if l.Until() != at(c.MaxHold) {
		t.Fatalf("held until %v, want the MaxHold of %v", l.Until().Sub(t0), c.MaxHold)
	}
	l = l.Step(Passed, 0, at(2*time.Second))
	if l.State() != Held || l.Since() != at(2*time.Second) || l.Until() != at(6*time.Second) {
		t.Errorf("after a pass at 2s: %v since %v until %v, want held since 2s until 6s", l.State(), l.Since().Sub(t0), l.Until().Sub(t0))
	}
	l = l.Step(Passed, 0, at(4*time.Second)).Step(Passed, 0, at(6*time.Second))
	if want := validity.Until(t0, c.TTL); l.Until() != want {
		t.Errorf("held until %v, want the end of validity, %v", l.Until().Sub(t0), want.Sub(t0))
	}
	if next, _ := l.Next(); !l.Due(at(6*time.Second)) || next > at(6*time.Second) {
		t.Errorf("the next renewal is due after %v, want at once: validity now ends before MaxHold", next.Sub(t0))
	}
	if l = l.Step(Tick, 0, at(9*time.Second)); l.State() != Lost || l.Cause() != HeldMax && l.Cause() != Expired {
		t.Errorf("after the last moment: %v by %v, want lost", l.State(), l.Cause())
	}
}

// The result of a renewal that was pending when the lease was passed on counts for the next
// holder.
func TestRenewalAcrossAPass(t *testing.T) {
	c := Config{TTL: 10 * time.Second, Notice: time.Second, Renew: 3 * time.Second}
	l := held(c).Step(RenewalSent, 0, at(3*time.Second)).Step(Passed, 0, at(4*time.Second)).Step(Renewed, at(3*time.Second), at(5*time.Second))
	if l.Until() != validity.Until(at(3*time.Second), c.TTL) || l.State() != Held {
		t.Errorf("renewed: %v until %v, want held until %v", l.State(), l.Until().Sub(t0), validity.Until(at(3*time.Second), c.TTL).Sub(t0))
	}
	if l := held(c).Step(RenewalSent, 0, at(3*time.Second)).Step(Passed, 0, at(4*time.Second)).Step(RenewalDenied, 0, at(5*time.Second)); l.State() != Lost {
		t.Errorf("denied: %v, want lost", l.State())
	}
}

// A pass does not bring back a lease that is over.
func TestPassResurrectsNothing(t *testing.T) {
	c := Config{TTL: 10 * time.Second, Notice: time.Second, Renew: 3 * time.Second, MaxHold: 4 * time.Second}
	for what, l := range map[string]Lease{
		"not granted": New(c),
		"denied":      held(c).Step(RenewalDenied, 0, at(time.Second)),
		"released":    held(c).Step(Release, 0, at(time.Second)),
		"held max":    held(c).Step(Tick, 0, at(3*time.Second)),
	} {
		if l.Passable(at(3 * time.Second)) {
			t.Errorf("%s: passable, want not", what)
		}
		if after := l.Step(Passed, 0, at(3*time.Second)); after.State() != l.State() || after.Live() {
			t.Errorf("%s: %v after a pass, want %v as before", what, after.State(), l.State())
		}
	}
	if l := held(c).Step(Passed, 0, at(9*time.Second)); l.State() != Lost {
		t.Errorf("passed on after its validity: %v, want lost", l.State())
	}
}

func TestPassable(t *testing.T) {
	c := Config{TTL: 9 * time.Second, Notice: time.Second, Renew: 3 * time.Second}
	never, most := c, c
	never.Renew = 0
	most.MaxHold = 100 * time.Second
	end := validity.Until(t0, c.TTL).Add(-c.Notice) // the holder is notified then
	for _, x := range []struct {
		c    Config
		now  clock.Instant
		want bool
	}{
		{c, t0, true}, {c, end.Add(-3 * time.Second), true}, {c, end.Add(-3*time.Second + 1), false}, {c, end, false},
		{never, t0, false}, {most, end.Add(-3 * time.Second), true},
	} {
		if got := held(x.c).Passable(x.now); got != x.want {
			t.Errorf("%+v after %v: passable %v, want %v", x.c, x.now.Sub(t0), got, x.want)
		}
	}
}
