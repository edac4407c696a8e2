package redisstore

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// writing returns a lease of a writer.
func writing(name string, require store.Class) store.Lease {
	r := lining(name, require)
	r.Kind, r.Weight = store.ReadWrite, store.ReadWriteLimit
	return r
}

// TestNoHandOffInQuarantine for a lock that several can hold.
func TestNoHandOffOfSharesInQuarantine(t *testing.T) {
	for name, c := range map[string]struct {
		mark string
		held bool
	}{
		"open":          {openMark, true},
		"quarantine":    {markOf(func(m *nodemark.Mark) { m.Open, m.Opens, m.Why = false, 1, "restarted" }), false},
		"other list":    {markOf(func(m *nodemark.Mark) { m.Print, m.List = "0123456789ab", "a,b,c" }), false},
		"other run":     {markOf(func(m *nodemark.Mark) { m.Run = strings.Repeat("b", 40) }), false},
		"other version": {"3 open", false},
		"emptied":       {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := onRedis(t)
			n.s.membership.Fingerprint, n.wire.run = "ba9876543210", strings.Repeat("a", script.RunPrint)
			n.text(t, "SET", script.MarkKey, openMark)
			held, next := writing("stock", store.CrashSafe), writing("stock", store.CrashSafe)
			n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})
			if n.text(t, "DEL", script.MarkKey); c.mark != "" {
				n.text(t, "SET", script.MarkKey, c.mark)
			}
			line := n.text(t, "LRANGE", "{stock}:line", "0", "-1")
			n.ask(t, driver.Question{Op: quorum.Release, Lease: held})
			if got := strings.Contains(n.text(t, "GET", "stock"), next.Owner); got != c.held {
				t.Errorf("handed on: %v", got)
			}
			if left := n.text(t, "LRANGE", "{stock}:line", "0", "-1"); !c.held && left != line {
				t.Errorf("the queue was %s and is %s", line, left)
			}
			other := n.ask(t, driver.Question{Op: quorum.Acquire, Lease: writing("stock", store.CrashSafe)})
			if granted := other[0].Kind == quorum.Yes; granted {
				t.Error("granted to another client")
			}
			n.ask(t, driver.Question{Op: quorum.Release, Lease: next})
			if left := n.text(t, "EXISTS", "{stock}:line", "{stock}:place:"+next.Owner); left != "0" {
				t.Error("a waiter that has left still has a place")
			}
		})
	}
}

// TestNoHandOffToAnotherMembership for a lock that several can hold.
func TestNoHandOffOfSharesToAnotherMembership(t *testing.T) {
	const one, other, both = "ba9876543210", "0123456789ab", "ba9876543210>0123456789ab"
	for _, c := range []struct {
		mark, waiter string
		handed       bool
	}{
		{one, one, true}, {one, other, false}, {one, both, true}, {both, one, false}, {other, both, true}, {nodemark.Unknown, one, true},
	} {
		n := onRedis(t)
		n.text(t, "SET", script.MarkKey, markOf(func(m *nodemark.Mark) { m.Print = nodemark.Unknown }))
		held, next := writing("stock", store.CrashSafe), writing("stock", store.CrashSafe)
		n.s.membership.Fingerprint = c.waiter
		n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true})
		n.text(t, "SET", script.MarkKey, markOf(func(m *nodemark.Mark) { m.Print = c.mark }))
		n.s.membership.Fingerprint = both
		n.ask(t, driver.Question{Op: quorum.Release, Lease: held})
		if got := strings.Contains(n.text(t, "GET", "stock"), next.Owner); got != c.handed {
			t.Errorf("a server of %s hands on to a client of %s: %v", c.mark, c.waiter, got)
		}
	}
}

// A waiter that requires a check of the mark is not handed the lock by a release that does
// not check it.
func TestGuardedShareNeedsACheckedRelease(t *testing.T) {
	n := onRedis(t)
	n.s.nodes = make([]*node, 1)
	held, next := writing("stock", 0), writing("stock", store.CrashSafe)
	n.ask(t, driver.Question{Op: quorum.Acquire, Lease: held}, driver.Question{Op: quorum.Acquire, Lease: next, Waits: true}, driver.Question{Op: quorum.Release, Lease: held})
	if said := n.text(t, "GET", "stock"); said != "nil" {
		t.Errorf("it is %s's", said)
	}
	if said := n.text(t, "EXISTS", "{stock}:line"); said != "0" {
		t.Error("the waiter that was told that the lock is free still has a place")
	}
}
