package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// listURL names nodes, and those that replace them if there are any.
func listURL(nodes []string, next ...string) string {
	url := "redis://" + strings.Join(nodes, ",") + brief
	if len(next) > 0 {
		url += "&next=" + strings.Join(next, ",")
	}
	return url
}

// isNamed fails unless Replace failed because of these nodes.
func isNamed(t *testing.T, err error, nodes ...*redistest.Server) {
	t.Helper()
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Op != "replace" {
		t.Fatalf("Replace: %v", err)
	}
	for _, n := range nodes {
		for _, o := range q.Nodes {
			if o.Node == n.Addr() && o.Outcome == store.Granted {
				t.Errorf("%s is not named in: %v", n.Addr(), err)
			}
		}
	}
}

// refuses says whether a node refuses clients of a list.
func refuses(t *testing.T, s *redisstore.Store, n *redistest.Server) bool {
	t.Helper()
	// It takes all nodes that are asked one after the other to hear each of them.
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

// A new node that is down is not left out in silence, and a second call has it join.
func TestReplaceIsNotDoneWithoutANewNode(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	before, after := a[:3], []string{a[0], a[1], a[3]}
	old := openURL(t, listURL(before))
	acquire(t, old, briefly("x"))
	openURL(t, listURL(before, after...)) // and so the new one is of the old list
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
			t.Errorf("%s is one of %s", n.Addr(), m.List)
		}
	}
	var steps []string
	if err := redisadmin.Replace(t.Context(), both, nil, func(s string) { steps = append(steps, s) }); err != nil || len(steps) != 2 {
		t.Errorf("when all is done: %q, %v", steps, err)
	}
}

// All nodes of the old list are gone when the replacement is called for again: that is
// enough only if it was begun while a majority of them was there.
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
			t.Errorf("it was begun: %v", err)
		} else if !begun {
			isNamed(t, err, servers[:3]...)
			for _, s := range servers[3:] {
				if m := markOn(t, s); m.Before != nodemark.Unknown {
					t.Errorf("%s: %v", s.Addr(), m)
				}
			}
		}
	}
}

// The replacement was told to a majority of the old nodes, and then interrupted.
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
		t.Fatal(err)
	}
	for _, s := range servers[:3] {
		s.Kill()
	}
	waited := false
	if err := redisadmin.Replace(t.Context(), both, nil, func(step string) { waited = waited || strings.Contains(step, "waiting") }); err != nil || !waited {
		t.Errorf("%v; it waited: %v", err, waited)
	}
	acquire(t, openURL(t, listURL(a[3:])), briefly("x"))
}

// A node of both lists was down during the replacement, and comes back with a mark from
// before: clients that know the new list have it join.
func TestNodeThatWasDownJoinsTheNewMembership(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	before, after := a[:3], []string{a[0], a[1], a[3]}
	old := openURL(t, listURL(before))
	acquire(t, old, briefly("x"))
	eventually(t, "the marks name the old list", func() bool { return markOn(t, servers[1]).List != nodemark.Unknown })
	servers[1].Text(t, "SAVE")
	servers[1].Kill()
	isNamed(t, redisadmin.Replace(t.Context(), listURL(before, after...), nil, nil), servers[1])
	next := openURL(t, listURL(after))
	acquire(t, next, briefly("y"))
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	if m := markOn(t, servers[1]); m.Print == markOn(t, servers[0]).Print {
		t.Fatal("it comes back with a mark from after the replacement: this test proves nothing")
	}
	eventually(t, "it is one of the new list", func() bool {
		next.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("z")}) // and so connects
		return markOn(t, servers[1]).Print == markOn(t, servers[0]).Print
	})
	// One that comes later, while all is well, is served by all.
	if refuses(t, openURL(t, listURL(after)), servers[1]) {
		t.Error("it still refuses")
	}
}

// The list of a node is not changed by clients of a list that was replaced by the node's:
// they may have met a node that was down then.
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
	for _, s := range []*redisstore.Store{replaced, openURL(t, listURL(second))} {
		for range 20 {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("x")}); err == nil {
				t.Fatal("a client of the list that was replaced has a lock")
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, i := range []int{0, 1, 2} {
		if m := markOn(t, servers[i]); m.Print != markOn(t, servers[2]).Print {
			t.Errorf("%s is one of %s", servers[i].Addr(), m.List)
		}
	}
}
