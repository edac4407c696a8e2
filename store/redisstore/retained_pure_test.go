package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// What is retained of a release ends its lease and gives up its place, and nothing else:
// it takes no place, and does not keep the lock for somebody who may be gone by then.
func TestToRetain(t *testing.T) {
	for _, wrong := range wrongToRetain() {
		t.Error(wrong)
	}
}

func wrongToRetain() (wrong []string) {
	lease := store.Request{Name: "a", Owner: "me", Meta: "{}", TTL: time.Minute, Renewed: true}
	next := &driver.Question{Op: quorum.Acquire, Lease: store.Request{Name: "a", Owner: "next", TTL: time.Minute}, Waits: true}
	q := driver.Question{Op: quorum.Release, Lease: lease, Tomb: true, GivesWay: true, To: "senior", Next: next}
	if got, want := toRetain(q), (driver.Question{Op: quorum.Release, Lease: lease, Tomb: true}); got != want {
		wrong = append(wrong, fmt.Sprintf("of %+v %+v is retained, want %+v", q, got, want))
	}
	q.Lease.Attempt = "second"
	if got := toRetain(q); !got.Lease.Undo || got.Lease.Attempt != "second" {
		wrong = append(wrong, fmt.Sprintf("of a release of one attempt of several %+v is retained", got))
	}
	return wrong
}

// A node that was away for an instant is tried again soon, one that is away for long
// once a second.
func TestRetryPause(t *testing.T) {
	away, tries := time.Duration(0), 0
	for ; away < time.Second; tries++ {
		p := retryPause(tries)
		if p > 100*time.Millisecond {
			t.Errorf("a pause of %v after %v", p, away)
		}
		away += p
	}
	for ; away < time.Minute; tries++ {
		away += retryPause(tries)
	}
	if p := retryPause(tries); p != time.Second {
		t.Errorf("a pause of %v after a minute", p)
	}
}
