package node

import (
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

// A retained release only ends its lease and removes its place: it makes no place, and does not
// reserve the lock for a waiter that may be gone by then.
func TestToRetain(t *testing.T) {
	for _, wrong := range wrongToRetain() {
		t.Error(wrong)
	}
}

func wrongToRetain() (wrong []string) {
	lease := store.Lease{Name: "a", Owner: "me", Meta: "{}", TTL: time.Minute}
	next := &driver.Question{Op: quorum.Acquire, Lease: store.Lease{Name: "a", Owner: "next", TTL: time.Minute}, Waits: true}
	q := driver.Question{Op: quorum.Release, Lease: lease, Tombstone: true, Renewed: true, GivesWay: true, To: "senior", Next: next}
	if got, want := toRetain(q), (driver.Question{Op: quorum.Release, Lease: lease, Tombstone: true, Renewed: true}); !reflect.DeepEqual(got, want) {
		wrong = append(wrong, fmt.Sprintf("of %+v %+v is retained, want %+v", q, got, want))
	}
	q.Lease.Attempt = "second"
	if got := toRetain(q); !got.Undo || got.Lease.Attempt != "second" {
		wrong = append(wrong, fmt.Sprintf("of a release of one attempt of several %+v is retained, want it to undo that attempt", got))
	}
	return wrong
}

// A heal that was not sent says nothing about the lease: the node may have it, or may yet
// get it, from an earlier request. Its release is retained.
func TestUnsentHealKeepsTheRelease(t *testing.T) {
	lease := store.Lease{Name: "a", Owner: "me", TTL: time.Minute}
	for op, retained := range map[quorum.Op]int{quorum.Acquire: 0, quorum.Heal: 1} {
		s := bareStore(config.Config{Logger: slog.New(slog.DiscardHandler)})
		n := makeNode(0, config.Address{}, s)
		n.Mu.Lock()
		for _, q := range []quorum.Op{op, quorum.Release} {
			n.retained.unsentLocked(Call{Command: s.Encode(driver.Question{Op: q, Lease: lease, Renewed: true}, nil)}, time.Now())
		}
		if got := n.retained.list.Len(); got != retained {
			t.Errorf("after an unsent %v, %d releases are retained, want %d", op, got, retained)
		}
		n.Mu.Unlock()
	}
}
