package recordstore

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Writes that follow each other leave the record alone for as long as three of them take, once there
// were enough or they have lasted long enough. A pause of the client that is long enough for others counts as well.
func TestTurns(t *testing.T) {
	const took = 10 * time.Millisecond
	var n turns
	now := clock.Instant(0)
	write := func(after, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := n.pause(now, 3, 5*took); got != want {
			t.Errorf("at %v: a pause of %v, want %v", now, got, want)
		}
		began := now.Add(want)
		now = began.Add(took)
		n.wrote(began, now)
	}
	for range 2 {
		for range 3 {
			write(time.Millisecond, 0)
		}
		write(2*took, 3*took)
	}
	for range 10 {
		write(3*took, 0)
	}
	for range 2 { // a row that lasts too long has fewer
		write(3*took, 0)
		write(2*took, 0)
		write(2*took, 3*took)
	}
}
