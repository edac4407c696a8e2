package etcdstore

import "testing"

// No two parts of a batch are of one lock: etcd judges the conditions of all before it changes
// anything, so both could be granted the lock.
func TestOnePartOfALockInABatch(t *testing.T) {
	b := newBatches(nil, nil, mostAlone)
	if !b.enter("p/a/") || !b.enter("p/b/") || !b.enter("p/b%2Fc/") {
		t.Error("parts of different locks do not go together")
	}
	if b.enter("p/b/") {
		t.Error("two parts of a lock go together")
	}
	b.leave("p/b/")
	if !b.enter("p/b/") {
		t.Error("a part does not go with others although the one before it has left")
	}
}

// After a batch that was refused, the next transactions go alone, and more of them if that goes on.
func TestPartsGoAloneAfterRefusals(t *testing.T) {
	b := newBatches(&link{}, nil, mostAlone)
	alone := func() (n int) {
		for b.isApart() {
			n++
		}
		return n
	}
	for _, want := range []int{apartAfter, 2 * apartAfter, 4 * apartAfter} {
		b.note(true)
		if got := alone(); got != want {
			t.Errorf("%d transactions go alone after a refusal, want %d", got, want)
		}
	}
	b.note(false)
	b.note(true)
	if got := alone(); got != apartAfter {
		t.Errorf("%d transactions go alone after a batch that was made and one that was refused, want %d", got, apartAfter)
	}
}
