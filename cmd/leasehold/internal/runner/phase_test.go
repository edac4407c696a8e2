package runner

import (
	"testing"
	"time"
)

func TestPhases(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	b := Budget{Grace: 3 * s, Slack: 200 * ms}
	for _, c := range []struct {
		name string
		from phase
		see  view
		b    Budget
		want phase
	}{
		{"the lease holds and the command runs", running, view{}, b, running},
		{"the command ends", running, view{exited: true}, b, done},
		{"the command ends, others of its group go on", running, view{exited: true, alone: false}, b, done},
		{"the lease is lost with time to spare", running, view{lost: true, left: 10 * s}, b, told},
		{"the lease is lost with no time left", running, view{lost: true, left: 200 * ms}, b, killing},
		{"the lease was lost long ago, as after a suspend", running, view{lost: true, left: -10 * s}, b, killing},
		{"no grace: killed at once", running, view{lost: true, left: 10 * s}, Budget{Slack: s}, killing},
		{"lost, and the command has ended with all its group", running, view{lost: true, exited: true, alone: true, left: s}, b, done},
		{"lost, and the command has ended but not its group", running, view{lost: true, exited: true, left: s}, b, told},
		{"told, still within its grace", told, view{lost: true, left: 10 * s, since: 2999 * ms}, b, told},
		{"told, grace is over, validity is not", told, view{lost: true, left: 10 * s, since: 3 * s}, b, killing},
		{"told, validity is about to end", told, view{lost: true, left: 200 * ms, since: s}, b, killing},
		{"told, the machine was suspended and the validity is over", told, view{lost: true, left: -s, since: 0}, b, killing},
		{"told, the command has ended, a child of it has not", told, view{lost: true, exited: true, left: s}, b, told},
		{"told, a child of it outlives the validity", told, view{lost: true, exited: true, left: 200 * ms}, b, killing},
		{"told, all processes have ended", told, view{lost: true, exited: true, alone: true, left: s}, b, done},
		{"killed, still there after an hour", killing, view{lost: true, left: -s, since: time.Hour}, b, killing},
		{"killed, all processes have ended", killing, view{lost: true, exited: true, alone: true}, b, done},
		{"killed, and the rest of the group lingers a little", killing, view{lost: true, exited: true, left: -s, since: 19 * ms}, b, killing},
		{"killed, the rest lingers past the end of validity", killing, view{lost: true, exited: true, left: 0, since: 20 * ms}, b, done},
		{"killed, the rest lingers for long", killing, view{lost: true, exited: true, left: s, since: s}, b, done},
	} {
		if got := c.from.next(c.see, c.b); got != c.want {
			t.Errorf("%s: from phase %d to %d, want %d", c.name, c.from, got, c.want)
		}
	}
}

// For any input, the next phase is not an earlier one, and a command whose lease is over is
// killed.
func TestPhasesOnlyGoForward(t *testing.T) {
	durations := []time.Duration{-time.Hour, 0, time.Millisecond, time.Second, time.Hour}
	bools := []bool{false, true}
	b := NewBudget(30*time.Second, 3*time.Second)
	for p := running; p <= done; p++ {
		for _, exited := range bools {
			for _, alone := range bools {
				for _, left := range durations {
					for _, since := range durations[1:] {
						v := view{exited: exited, alone: alone, lost: true, left: left, since: since}
						next := p.next(v, b)
						if next < p {
							t.Errorf("phase %d goes back to %d at %+v, want no earlier phase", p, next, v)
						}
						if left <= b.Slack && next < killing {
							t.Errorf("phase %d leaves the command alive at %+v, want it killed", p, v)
						}
						if nap := next.nap(v, b); next == told && nap > left {
							t.Errorf("phase %d sleeps for %v at %+v, want no longer than the validity", next, nap, v)
						}
					}
				}
			}
		}
	}
}

func TestBudget(t *testing.T) {
	for _, c := range []struct{ ttl, grace, notice time.Duration }{
		{30 * time.Second, 3 * time.Second, 3500 * time.Millisecond},
		{2 * time.Second, 200 * time.Millisecond, 280 * time.Millisecond},
		{time.Hour, 10 * time.Second, 10500 * time.Millisecond},
	} {
		if g := DefaultGrace(c.ttl); g != c.grace {
			t.Errorf("TTL %v: default grace %v, want %v", c.ttl, g, c.grace)
		}
		if n := NewBudget(c.ttl, c.grace).Notice(); n != c.notice {
			t.Errorf("TTL %v: notice %v, want %v", c.ttl, n, c.notice)
		}
	}
}
