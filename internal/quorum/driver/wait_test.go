package driver

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// silent is a node that takes calls and does not reply.
type silent struct{ oracle }

func (*silent) Put(Call[[]Question]) error { return nil }

// Several nodes reply at the same time, and a goroutine may be held up before it reports a
// reason. The last report is the latest reason all the same.
func TestLatestNewsIsReportedLast(t *testing.T) {
	k := &Driver[[]Question]{
		Nodes:       []Node[[]Question]{&silent{}, &silent{}, &silent{}},
		Encode:      func(q Question, _ []Question) []Question { return []Question{q} },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}
	now := k.Clock.Now()
	a := k.newAttempt(store.WaitRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwnerAt(time.Unix(2000, 0)), TTL: time.Minute}}, now)
	var positions []int
	a.core.BeginWait(k.config(a.r.Lease), a.r.TTL, now, false)
	a.waiting = waitState{waits: true, reason: func(err error) {
		var busy *store.BusyError
		if !errors.As(err, &busy) {
			t.Errorf("the reason is %v, want a BusyError", err)
			return
		}
		positions = append(positions, busy.Position)
	}}
	a.users += 5 // the calls that get a reply below
	a.mu.Unlock()
	holder := store.Holder{Owner: store.NewOwnerAt(time.Unix(1000, 0)), Host: "h", PID: 1}
	reply := func(node, position int) {
		a.Receive(node, int(quorum.Acquire), Reply{
			Kind: quorum.No, Position: position,
			Report: store.NodeOutcome{Outcome: store.Taken, Holder: holder, ExpiresIn: time.Minute},
		})
	}
	known := func(position int) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.waiting.lastNews.position == position
	}

	reply(0, 1)
	reply(1, 1)
	a.reporting.Lock() // as if a goroutine were held up in a report
	var held sync.WaitGroup
	for _, position := range []int{3, 2, 1} {
		held.Go(func() { reply(2, position) })
		for !known(position) {
			runtime.Gosched()
		}
	}
	a.reporting.Unlock()
	held.Wait()
	if !slices.Equal(positions, []int{1}) {
		t.Errorf("positions %v were reported, want only 1: 3 and 2 were outdated before the first report", positions)
	}
}

// waitsOf returns a waiting attempt of a driver of n nodes, whose pauses are not jittered.
func waitsOf(n int, ttl time.Duration) *attempt[[]Question] {
	k := &Driver[[]Question]{Nodes: make([]Node[[]Question], n), Jitter: func(d time.Duration) time.Duration { return d }}
	return &attempt[[]Question]{k: k, r: store.WaitRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: ttl}}}
}

// heldFor is the reply of a node on which another owner has the lock for d.
func heldFor(d time.Duration, position int) Reply {
	holder := store.Holder{Owner: store.NewOwner(), Host: "h", PID: 1}
	return Reply{Kind: quorum.No, Position: position, Report: store.NodeOutcome{Outcome: store.Taken, Holder: holder, ExpiresIn: d}}
}

// If a lease is not renewed, every waiter asks soon after its end, in the order of the queue.
func TestAllWaitersAskWhenALeaseEnds(t *testing.T) {
	const left, ttl = 5 * time.Second, time.Hour
	a := waitsOf(3, ttl)
	last := left
	for position := 1; position <= 1000; position++ {
		d := a.retryAfterLocked(heldFor(left, position))
		if d <= last {
			t.Fatalf("position %d asks after %v, want later than the one ahead, after %v", position, d, last)
		}
		if position <= 50 && d > left+time.Second {
			t.Fatalf("position %d asks %v after the end of the lease, want 1s at most", position, d-left)
		}
		last = d
	}
	if d := a.retryAfterLocked(heldFor(ttl*2/3, 1)); d <= ttl/3 {
		t.Errorf("asks after %v, want later than the next refresh of the place, after %v: the lease can be renewed by then", d, ttl/3)
	}
}

// The requests of many waiters per second are bounded, also if the TTL of the holder is far
// shorter than theirs.
func TestManyWaitersForAShortLease(t *testing.T) {
	const most = 400 // per second
	a := waitsOf(3, time.Hour)
	asked := 0.0
	for position := 1; position <= 5000; position++ {
		asked += 1 / a.retryAfterLocked(heldFor(50*time.Millisecond, position)).Seconds()
	}
	if asked > most {
		t.Errorf("5000 waiters ask %.0f times per second, want %d at most", asked, most)
	}
}

// However many waiters there are for locks whose release is not pushed, together they poll
// no more often than polledAtOnce of them would. Up to that number they poll at full pace. If
// another kind of client holds the lock, that pace is higher for the first in the queue.
func TestPollingIsBounded(t *testing.T) {
	a := waitsOf(1, time.Hour)
	first, second, noPush := heldFor(time.Hour, 1), heldFor(time.Hour, 2), heldFor(time.Hour, 1)
	first.Report.Holder = store.Holder{Owner: "x", Foreign: true}
	second.Report.Holder, noPush.NoPush = first.Report.Holder, true
	for n := 1; n <= 10*polledAtOnce; n++ {
		a.k.waiters.add(&attempt[[]Question]{r: store.WaitRequest{Lease: store.Lease{Owner: store.NewOwner()}}})
		for _, c := range []struct {
			what  string
			ans   Reply
			every time.Duration
		}{{"first behind another kind of client", first, 100 * time.Millisecond}, {"second behind another kind of client", second, pollEvery}, {"no push", noPush, pollEvery}} {
			d := a.retryAfterLocked(c.ans)
			if n < polledAtOnce && d != c.every {
				t.Fatalf("%s: %d waiters poll every %v, want every %v", c.what, n, d, c.every)
			}
			if all := c.every / polledAtOnce * time.Duration(n); d < all {
				t.Fatalf("%s: %d waiters poll every %v, want every %v at most", c.what, n, d, all)
			}
		}
	}
}
