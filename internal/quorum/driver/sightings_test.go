package driver

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// The driver remembers since when it has seen each of the owners that it has seen lately. Their
// number is bounded.
func TestSightingsAreBounded(t *testing.T) {
	var s sightings
	start := clock.Instant(time.Hour)
	now := start
	if got := s.since("stuck", now); got != start {
		t.Errorf("a new owner is reported as seen %v before now", start.Sub(got))
	}
	// Many owners are seen once. The owner that is seen again and again is not forgotten.
	for i := range 20 * mostSightings {
		now = now.Add(time.Millisecond)
		if got := s.since(fmt.Sprint("other", i), now); got != now {
			t.Fatalf("a new owner is reported as seen %v ago, want now", now.Sub(got))
		}
		if got := s.since("stuck", now); got != start {
			t.Fatalf("after %v an owner is known since %v after the start, want since the start", now.Sub(start), got.Sub(start))
		}
		if len(s.owners) > mostSightings+1 {
			t.Fatalf("%d owners are remembered, want %d at most", len(s.owners), mostSightings+1)
		}
	}
	// Nor are more remembered if they are all seen at the same moment.
	for i := range 4 * mostSightings {
		s.since(fmt.Sprint("contender", i), now)
	}
	if len(s.owners) > mostSightings+1 {
		t.Errorf("%d owners are remembered, want %d at most", len(s.owners), mostSightings+1)
	}
}

// A later attempt knows since when an earlier one has seen an owner. On a single node this is
// not needed, and nothing is remembered.
func TestSeenByAnEarlierAttempt(t *testing.T) {
	k := &Driver[[]Question]{Nodes: []Node[[]Question]{&oracle{}, &oracle{index: 1}, &oracle{index: 2}}, Clock: clock.System()}
	senior, junior := store.NewOwnerAt(time.Unix(1000, 0)), store.NewOwnerAt(time.Unix(3000, 0))
	observe := func(holder string, at clock.Instant) quorum.Event {
		a := k.newAttempt(store.WaitRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwnerAt(time.Unix(2000, 0)), TTL: time.Minute}}, at)
		defer a.doneLocked()
		a.waiting.waits = true
		said := store.NodeOutcome{Outcome: store.Taken, Holder: store.Holder{Owner: holder, PID: 1}, ExpiresIn: time.Minute}
		return a.eventLocked(quorum.Event{Kind: quorum.No, Op: quorum.Acquire}, Reply{Kind: quorum.No, Report: said, At: at})
	}
	first, later := clock.Instant(time.Hour), clock.Instant(2*time.Hour)
	for _, at := range []clock.Instant{first, later} {
		if e := observe(senior, at); !e.Senior || e.HolderSince != first {
			t.Errorf("a senior owner: senior %v, known since %v after the first time, want true and 0s", e.Senior, e.HolderSince.Sub(first))
		}
		if e := observe(junior, at); e.Senior || e.HolderSince != first {
			t.Errorf("a junior owner: senior %v, known since %v after the first time, want false and 0s", e.Senior, e.HolderSince.Sub(first))
		}
	}
	k.Nodes = k.Nodes[:1]
	if e := observe(senior, later); e.HolderSince != 0 {
		t.Errorf("on a single node the holder is known since %v, want 0", e.HolderSince)
	}
}
