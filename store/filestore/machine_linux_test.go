package filestore

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// The file's clock is the clock that holders use, without the offset of a time
// namespace.
func TestMachineClock(t *testing.T) {
	offset, err := boottimeOffset()
	if err != nil {
		t.Fatal(err)
	}
	m := thisMachine()
	before := clock.System().Now()
	now, err := m.now()
	after := clock.System().Now()
	if now = now.Add(offset); err != nil || now < before || now > after {
		t.Errorf("%v, %v, want it between %v and %v", now, err, before, after)
	}
	id, err := m.bootID()
	if again, _ := m.bootID(); err != nil || len(id) != 36 || again != id {
		t.Errorf("boot id %q, then %q, %v", id, again, err)
	}
}

func TestBoottimeOffset(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"monotonic           0         0\nboottime            0         0\n":     0,
		"monotonic          -7         5\nboottime           86400  500000000\n": 24*time.Hour + 500*time.Millisecond,
		"monotonic           1         0\nboottime          -10  0\n":            -10 * time.Second,
	} {
		if got, err := parseBoottimeOffset(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	if _, err := parseBoottimeOffset("monotonic 0 0\n"); err == nil {
		t.Error("no error for a text without boottime")
	}
}
