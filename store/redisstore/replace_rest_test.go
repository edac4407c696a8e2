package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// listURL returns a URL with nodes, and with those that replace them, if any.
func listURL(nodes []string, next ...string) string {
	url := "redis://" + strings.Join(nodes, ",") + brief
	if len(next) > 0 {
		url += "&next=" + strings.Join(next, ",")
	}
	return url
}

// isNamed fails the test unless Replace failed because of these nodes.
func isNamed(t *testing.T, err error, nodes ...*redistest.Server) {
	t.Helper()
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Op != "replace" {
		t.Fatalf("Replace: %v, want a *QuorumError of Replace", err)
	}
	for _, n := range nodes {
		for _, o := range q.Nodes {
			if o.Node == n.Addr() && o.Outcome == store.Granted {
				t.Errorf("the error does not name %s: %v", n.Addr(), err)
			}
		}
	}
}

// refuses reports whether the node refuses the client.
func refuses(t *testing.T, s *store.Store, n *redistest.Server) bool {
	t.Helper()
	// The error has the outcome of every node.
	var q *store.QuorumError
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("free")})
	if errors.As(err, &q) {
		for _, o := range q.Nodes {
			if o.Node == n.Addr() && o.Outcome == store.Refused {
				return true
			}
		}
	}
	return false
}

func markOn(t *testing.T, s *redistest.Server) nodemark.Mark {
	t.Helper()
	m, err := nodemark.Parse(s.Text(t, "GET", redistest.Mark))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Replace returns an error if a new node is down, and a second call makes the node join.
func TestReplaceIsNotDoneWithoutANewNode(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	before, after := a[:3], []string{a[0], a[1], a[3]}
	old := openURL(t, listURL(before))
	acquire(t, old, briefly("x"))
	openURL(t, listURL(before, after...)) // which makes the new node belong to both lists
	servers[3].Text(t, "SAVE")
	servers[3].Kill()
	both := listURL(before, after...)
	isNamed(t, redisadmin.Replace(t.Context(), both, nil, nil), servers[3])
	if err := servers[3].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := redisadmin.Replace(t.Context(), both, nil, nil); err != nil {
		t.Fatal(err)
	}
	list := markOn(t, servers[0]).List
	for _, n := range []*redistest.Server{servers[1], servers[3]} {
		if m := markOn(t, n); m.List != list || strings.Contains(m.List, ">") {
			t.Errorf("%s has the list %s, want %s", n.Addr(), m.List, list)
		}
	}
	var steps []string
	if err := redisadmin.Replace(t.Context(), both, nil, func(s string) { steps = append(steps, s) }); err != nil || len(steps) != 2 {
		t.Errorf("Replace after it is done: steps %q, %v, want 2", steps, err)
	}
}

// If all nodes of the old list are gone when Replace is called again, it succeeds only if a
// majority of them had been reached before.
func TestReplaceWhenTheOldNodesAreGone(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{true, false} {
		servers := redistest.StartN(t, 6)
		a := addrs(servers)
		both := listURL(a[:3], a[3:]...)
		openURL(t, both)
		servers[5].Text(t, "SAVE")
		servers[5].Kill()
		if begun {
			isNamed(t, redisadmin.Replace(t.Context(), both, nil, nil), servers[5])
		}
		for _, s := range servers[:3] {
			s.Kill()
		}
		if err := servers[5].Restart(); err != nil {
			t.Fatal(err)
		}
		err := redisadmin.Replace(t.Context(), both, nil, nil)
		if begun && err != nil {
			t.Errorf("Replace that was begun before: %v", err)
		} else if !begun {
			isNamed(t, err, servers[:3]...)
			for _, s := range servers[3:] {
				if m := markOn(t, s); m.Before != nodemark.Unknown {
					t.Errorf("the mark of %s is %v, want no earlier list", s.Addr(), m)
				}
			}
		}
	}
}

// A replacement that was interrupted after it had reached a majority of the old nodes can be
// completed without them.
func TestReplaceGoesOnWithoutTheOldNodes(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 6)
	a := addrs(servers)
	both := listURL(a[:3], a[3:]...)
	ctx, cancel := context.WithCancel(t.Context())
	err := redisadmin.Replace(ctx, both, nil, func(step string) {
		if strings.Contains(step, "waiting") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want %v", err, context.Canceled)
	}
	for _, s := range servers[:3] {
		s.Kill()
	}
	waited := false
	if err := redisadmin.Replace(t.Context(), both, nil, func(step string) { waited = waited || strings.Contains(step, "waiting") }); err != nil || !waited {
		t.Errorf("Replace again: %v, waited: %v; want success after waiting", err, waited)
	}
	acquire(t, openURL(t, listURL(a[3:])), briefly("x"))
}

// A node of both lists that was down during the replacement comes back with an old mark.
// Clients with the new list make it join.
func TestNodeThatWasDownJoinsTheNewMembership(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	before, after := a[:3], []string{a[0], a[1], a[3]}
	old := openURL(t, listURL(before))
	acquire(t, old, briefly("x"))
	eventually.True(t, "the marks name the old list", func() bool { return markOn(t, servers[1]).List != nodemark.Unknown })
	servers[1].Text(t, "SAVE")
	servers[1].Kill()
	isNamed(t, redisadmin.Replace(t.Context(), listURL(before, after...), nil, nil), servers[1])
	next := openURL(t, listURL(after))
	acquire(t, next, briefly("y"))
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	if m := markOn(t, servers[1]); m.Print == markOn(t, servers[0]).Print {
		t.Fatal("the node comes back with a mark from after the replacement, so the test shows nothing")
	}
	eventually.True(t, "the node has the new list", func() bool {
		next.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("z")}) // which makes it connect
		return markOn(t, servers[1]).Print == markOn(t, servers[0]).Print
	})
	// All nodes serve a client that is opened later.
	if refuses(t, openURL(t, listURL(after)), servers[1]) {
		t.Error("the node still refuses clients with the new list")
	}
}

// A client with a list that was replaced does not change the list of a node back, although it
// may have reached a node that was down during the replacement.
func TestReplacedMembershipTakesNoNodeBack(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	first, second := a[:3], []string{a[0], a[1], a[3]}
	openURL(t, listURL(first))
	replace := func(from, to []string) {
		t.Helper()
		if err := redisadmin.Replace(t.Context(), listURL(from, to...), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	replace(first, second)
	replaced := openURL(t, listURL(second))
	if err := servers[3].Freeze(); err != nil {
		t.Fatal(err)
	}
	replace(second, first)
	if err := servers[3].Thaw(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*store.Store{replaced, openURL(t, listURL(second))} {
		for range 20 {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("x")}); err == nil {
				t.Fatal("a client with the list that was replaced gets a lock")
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, i := range []int{0, 1, 2} {
		if m := markOn(t, servers[i]); m.Print != markOn(t, servers[2]).Print {
			t.Errorf("%s has the list %s, want that of the last replacement", servers[i].Addr(), m.List)
		}
	}
}

// Clients that are idle do not notice that a node is back which was down during the replacement. If
// another node is emptied then, no majority is left that knows of the replacement, and the error says
// what helps: to replace again.
func TestErrorAfterAMissedReplacementSaysToReplaceAgain(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	before, after := a[:3], []string{a[0], a[1], a[3]}
	both := listURL(before, after...)
	acquire(t, openURL(t, listURL(before)), briefly("x"))
	servers[1].Text(t, "SAVE")
	servers[1].Kill()
	err := redisadmin.Replace(t.Context(), both, nil, nil)
	isNamed(t, err, servers[1])
	if strings.Contains(err.Error(), a[2]) {
		t.Errorf("Replace: %v, which lists an old node that the last step did not ask", err)
	}
	next := openURL(t, listURL(after))
	acquire(t, next, briefly("y"))
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	servers[3].Text(t, "FLUSHALL")
	for _, s := range []*store.Store{openURL(t, listURL(after)), next} {
		eventually.True(t, "the error says to replace again", func() bool {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("z")})
			if err == nil {
				t.Fatal("a lock is granted by one node of three")
			}
			return strings.Contains(err.Error(), "leasehold replace again, with --store 'redis://"+strings.Join(slices.Sorted(slices.Values(before)), ",")+"?next=")
		})
	}
	// A node that has just been emptied takes part a moment later.
	eventually.True(t, "the list is replaced", func() bool { return redisadmin.Replace(t.Context(), both, nil, nil) == nil })
	eventually.True(t, "locks are granted again", func() bool {
		_, err := next.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("z")})
		return err == nil
	})
}
