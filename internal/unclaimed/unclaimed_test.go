package unclaimed

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A place can be taken once, until it expires or Places is closed.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Places[string]
		expired := 0
		put := func(owner string) bool {
			l := store.Lease{Name: "a", Owner: owner, TTL: time.Minute}
			return p.Put(l, "place of "+owner, func() { expired++ })
		}
		ann, bob := store.Lease{Name: "a", Owner: "ann"}, store.Lease{Name: "a", Owner: "bob"}
		put("ann")
		put("bob")
		if place, ok := p.Take(ann); !ok || place != "place of ann" {
			t.Errorf("Take = %q, %v, want the place of ann", place, ok)
		}
		if _, ok := p.Take(ann); ok {
			t.Error("a place was taken twice")
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); expired != 1 {
			t.Errorf("%d places expired, want the one that was not taken", expired)
		}
		if _, ok := p.Take(bob); ok {
			t.Error("a place that has expired was taken")
		}
		put("cid")
		if all := p.Close(); len(all) != 1 || all[0] != "place of cid" || put("dan") || len(p.Close()) != 0 {
			t.Errorf("Close returned %q, want the place of cid; afterwards Put must refuse, and Close return none", all)
		}
		time.Sleep(time.Hour)
		if synctest.Wait(); expired != 1 {
			t.Errorf("%d places expired, want 1: none after Close", expired)
		}
	})
}
