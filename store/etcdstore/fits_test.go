package etcdstore

import "testing"

// No two steps of a batch concern the same lock: etcd judges the conditions of all before it
// changes anything, so both could be granted the lock.
func TestOneStepOfALockInABatch(t *testing.T) {
	batch := []*part{{prefix: "p/a/"}, {prefix: "p/b/"}}
	if fits(batch, &part{prefix: "p/b/"}) {
		t.Error("two steps of a lock go together")
	}
	if !fits(batch, &part{prefix: "p/b%2Fc/"}) {
		t.Error("steps of different locks do not go together")
	}
}
