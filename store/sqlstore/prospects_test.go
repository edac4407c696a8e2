package sqlstore

import (
	"strconv"
	"testing"
)

// After a batch has left a step, some steps of the lock are made alone. New locks count as one.
func TestProspects(t *testing.T) {
	var p prospects
	alone := func(name string) (n int) {
		for !p.good(name) {
			n++
		}
		return n
	}
	p.learn("waited for")
	p.learn("free")
	if !p.good("waited for") || !p.good("free") || !p.good("new") {
		t.Error("a step without a history is made alone")
	}
	p.left("waited for")
	p.left("new")
	p.learn("waited for") // does not change it
	if !p.good("free") {
		t.Error("a step of a lock is made alone because a batch left those of others")
	}
	if p.good("newer") {
		t.Error("a request for a new lock goes in a batch although a batch has just left another")
	}
	if n := 1 + alone("another"); n != apartFor {
		t.Errorf("%d requests for new locks are made alone, want %d", n, apartFor)
	}
	if n := alone("waited for"); n != apartFor {
		t.Errorf("%d steps of a lock are made alone, want %d", n, apartFor)
	}
	for i := range 3 * mostKnown {
		p.learn(strconv.Itoa(i))
	}
	if len(p.known) != mostKnown {
		t.Errorf("%d locks are remembered, want %d", len(p.known), mostKnown)
	}
}
