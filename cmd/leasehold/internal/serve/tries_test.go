package serve

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A memory keeps the largest number of a call for a minute, and not for ever.
func TestMemory(t *testing.T) {
	var m memory
	var now clock.Instant
	at := func(d time.Duration) clock.Instant { return now.Add(d) }
	m.set(1, 3, at(time.Second))
	m.set(1, 2, at(2*time.Second))
	m.set(2, 1, at(59*time.Second))
	for _, c := range []struct {
		call callID
		at   time.Duration
		want int
	}{{1, 3 * time.Second, 3}, {2, 62 * time.Second, 1}, {2, 118 * time.Second, 1}, {3, 118 * time.Second, 0}} {
		if n := m.get(c.call, at(c.at)); n != c.want {
			t.Errorf("call %d after %v: %d, want %d", c.call, c.at, n, c.want)
		}
	}
	for i := range callID(10) {
		m.set(10+i, 1, at(119*time.Second+time.Duration(i)*time.Hour))
	}
	if n := m.get(2, at(20*time.Hour)); n != 0 || len(m.young)+len(m.old) > 3 {
		t.Errorf("after hours: %d, and %d calls are known", n, len(m.young)+len(m.old))
	}
	for i := range callID(3 * mostRemembered) {
		m.set(100+i, 1, at(21*time.Hour))
	}
	if n := len(m.young) + len(m.old); n > 2*mostRemembered || m.get(100+3*mostRemembered-1, at(21*time.Hour)) != 1 {
		t.Errorf("%d calls are known, want %d at most and the last one", n, 2*mostRemembered)
	}
}
