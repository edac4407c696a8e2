package majority

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

func TestSeen(t *testing.T) {
	var s seen
	start := clock.Instant(time.Hour)
	now := start
	if got := s.since("stuck", now); got != start {
		t.Errorf("first seen %v before it was", start.Sub(got))
	}
	// Many come and go, and the one that stays is known all the time.
	for i := range 20 * mostSeen {
		now = now.Add(time.Millisecond)
		if got := s.since(fmt.Sprint("other", i), now); got != now {
			t.Fatalf("somebody new is known since %v ago", now.Sub(got))
		}
		if got := s.since("stuck", now); got != start {
			t.Fatalf("after %v: known since %v later", now.Sub(start), got.Sub(start))
		}
		if len(s.owners) > mostSeen+1 {
			t.Fatalf("%d are remembered", len(s.owners))
		}
	}
	// All at the same moment are too many, and no harm.
	for i := range 4 * mostSeen {
		s.since(fmt.Sprint("crowd", i), now)
	}
	if len(s.owners) > mostSeen+1 {
		t.Errorf("%d are remembered", len(s.owners))
	}
}
