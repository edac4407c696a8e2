package driver

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// granting is a node that records its calls and grants every request at once. If it is
// mute, it does not reply, and keeps the releases.
type granting struct {
	index    int
	mute     bool
	asked    []string
	releases []Call[Question]
}

func (g *granting) Addr() string { return fmt.Sprint("node", g.index) }

func (g *granting) Put(c Call[Question]) error {
	q := c.Payload
	text := fmt.Sprint(q.Op, " ", q.Lease.Owner)
	if q.Tombstone && q.Renewed {
		text += " and buried"
	}
	g.asked = append(g.asked, text)
	if !g.mute {
		go c.To.Receive(g.index, c.Tag, Reply{Kind: quorum.Yes, Token: 7, Report: store.NodeOutcome{Outcome: store.Granted}})
	} else if q.Op == quorum.Release {
		g.releases = append(g.releases, c)
	}
	return nil
}

func (g *granting) Flush() {}

// latePushes has the last node push late to owners in different states, and returns the releases
// that it is sent then. Before and after that, it answers the releases of the leases, with these
// kinds.
func latePushes(t *testing.T, push func(k *Driver[Question], owner string), before, after []quorum.Kind) []string {
	nodes := []*granting{{index: 0}, {index: 1}, {index: 2, mute: true}}
	k := &Driver[Question]{
		Encode:      func(q, _ Question) Question { return q },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}
	for _, n := range nodes {
		k.Nodes = append(k.Nodes, n)
	}
	request := func(owner string) store.Lease {
		return store.Lease{Name: "a", Owner: owner, TTL: time.Minute}
	}
	for _, owner := range []string{"holds", "released", "returned"} {
		if _, err := k.Wait(t.Context(), store.WaitRequest{Lease: request(owner)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Release(t.Context(), store.ReleaseRequest{Lease: request("released")}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: request("returned")}, store.WaitRequest{Lease: request("next")}); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range nodes {
		n.mute = true
	}
	if _, err := k.Wait(gone, store.WaitRequest{Lease: request("left")}, nil); err == nil {
		t.Fatal("granted by nodes that do not reply, want an error")
	}
	answer := func(kinds []quorum.Kind) {
		for i, c := range nodes[2].releases[:len(kinds)] {
			c.To.Receive(2, c.Tag, Reply{Kind: kinds[i], Report: store.NodeOutcome{Outcome: store.Granted}})
		}
	}
	answer(before)
	nodes[2].asked = nil
	for _, owner := range []string{"holds", "released", "returned", "next", "left", "unknown"} {
		push(k, owner)
	}
	answer(after)
	return nodes[2].asked
}

func grantLate(k *Driver[Question], owner string) {
	k.OnGranted(2, owner, Reply{Token: 8, Stamp: k.Clock.Now()})
}

// answered says yes to the releases of both leases.
var answered = []quorum.Kind{quorum.Yes, quorum.Yes}

// A late grant to an owner that has left is released. A late grant to an owner that holds the
// lock, or still waits, is not. A request of the owner that has left may arrive later still, so
// the release leaves a tombstone. It replaces a release that was retained for the node, and
// that would have left one.
func TestUnwantedGrantIsDeclined(t *testing.T) {
	if got, want := latePushes(t, grantLate, answered, nil), []string{"release released and buried", "release returned and buried", "release left and buried"}; !slices.Equal(got, want) {
		t.Errorf("the node is sent %q, want %q", got, want)
	}
}

// A late hint that an owner may have been granted the lock has that released for an owner that has
// left the queue without the lock. An owner that was granted the lock releases it by itself: if
// another release came first, its own would find that it does not hold the lock.
func TestLateHints(t *testing.T) {
	hint := func(k *Driver[Question], owner string) { k.OnHint(2, owner) }
	if got, want := latePushes(t, hint, answered, nil), []string{"release left and buried"}; !slices.Equal(got, want) {
		t.Errorf("the node is sent %q, want %q", got, want)
	}
}

// While the release of a lease is on its way, it will release a late grant as well. The grant
// is released again only if that release may not have arrived.
func TestReleaseOnItsWayComesAfterALateGrant(t *testing.T) {
	for _, c := range []struct {
		after []quorum.Kind
		want  []string
	}{
		{nil, []string{"release left and buried"}},
		{[]quorum.Kind{quorum.Yes, quorum.No}, []string{"release left and buried"}},
		{[]quorum.Kind{quorum.Unknown, quorum.Unsent}, []string{"release left and buried", "release released and buried", "release returned and buried"}},
	} {
		if got := latePushes(t, grantLate, nil, c.after); !slices.Equal(got, c.want) {
			t.Errorf("answers %v: the node is sent %q, want %q", c.after, got, c.want)
		}
	}
}

// Only the owners that left last are remembered.
func TestDepartedAreBounded(t *testing.T) {
	var d departures
	for i := range 3 * mostDepartures {
		d.add(store.Lease{Owner: fmt.Sprint(i)}, false, 0)
	}
	if len(d.byOwner) != mostDepartures || d.byOwner[fmt.Sprint(3*mostDepartures-1)] == nil {
		t.Errorf("%d owners are remembered, want the last %d", len(d.byOwner), mostDepartures)
	}
}
