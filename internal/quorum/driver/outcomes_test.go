package driver

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// The error for another kind names the one that most nodes have the lock as.
func TestKindOfMostNodes(t *testing.T) {
	as := func(k store.Kind) store.NodeOutcome {
		return store.NodeOutcome{Outcome: store.WrongType, Err: &store.KindError{InUse: k.Normal()}}
	}
	nodes := []store.NodeOutcome{as(store.Kind{}), as(store.Semaphore(2)), as(store.Semaphore(2))}
	err := kindErrorOf(store.Lease{Name: "stock", Kind: store.Semaphore(3)}, nodes)
	if said, ok := errors.AsType[*store.KindError](err); !ok || said.InUse != store.Semaphore(2).Normal() {
		t.Errorf("got %v, want the lock to be in use as a %v", err, store.Semaphore(2))
	}
}
