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

// silent is a node that takes calls and does not answer them.
type silent struct{ oracle }

func (*silent) Put(Call[[]Question]) error { return nil }

// Nodes answer at the same time, and a goroutine with news may be held up before it reports
// them. The last report is the latest news all the same.
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
	a.mu.Lock()
	a.core.BeginWait(k.config(a.r.Lease), a.r.TTL, now, false)
	a.waiting = waitState{waits: true, reason: func(err error) {
		var busy *store.BusyError
		if !errors.As(err, &busy) {
			t.Errorf("told %v", err)
			return
		}
		positions = append(positions, busy.Position)
	}}
	a.users += 5 // the calls that are answered below
	a.mu.Unlock()
	holder := store.Holder{Owner: store.NewOwnerAt(time.Unix(1000, 0)), Host: "h", PID: 1}
	answer := func(node, position int) {
		a.Receive(node, int(quorum.Acquire), Reply{
			Kind: quorum.No, Position: position,
			Report: store.NodeOutcome{Outcome: store.Taken, Holder: holder, ExpiresIn: time.Minute},
		})
	}
	told := func(position int) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.waiting.lastNews.position == position
	}

	answer(0, 1)
	answer(1, 1)
	a.reporting.Lock() // as a goroutine that is held up in a report
	var held sync.WaitGroup
	for _, position := range []int{3, 2, 1} {
		held.Go(func() { answer(2, position) })
		for !told(position) {
			runtime.Gosched()
		}
	}
	a.reporting.Unlock()
	held.Wait()
	if !slices.Equal(positions, []int{1}) {
		t.Errorf("told of the positions %v, but 3 and 2 were outdated before the first report", positions)
	}
}

// waitsOf is an attempt that waits, of a driver of n nodes, whose pauses are not jittered.
func waitsOf(n int, ttl time.Duration) *attempt[[]Question] {
	k := &Driver[[]Question]{Nodes: make([]Node[[]Question], n), Jitter: func(d time.Duration) time.Duration { return d }}
	return &attempt[[]Question]{k: k, r: store.WaitRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: ttl}}}
}

func heldFor(d time.Duration, position int) Reply {
	holder := store.Holder{Owner: store.NewOwner(), Host: "h", PID: 1}
	return Reply{Kind: quorum.No, Position: position, Report: store.NodeOutcome{Outcome: store.Taken, Holder: holder, ExpiresIn: d}}
}

// A waiter asks soon after the end of a lease that is not renewed, wherever it is in the
// queue. The live waiters before it have asked by then.
func TestAllWaitersAskWhenALeaseEnds(t *testing.T) {
	const left, ttl = 5 * time.Second, time.Hour
	a := waitsOf(3, ttl)
	last := left
	for position := 1; position <= 1000; position++ {
		d := a.retryAfterLocked(heldFor(left, position))
		if d <= last {
			t.Fatalf("position %d asks after %v, and the one before it after %v", position, d, last)
		}
		if position <= 50 && d > left+time.Second {
			t.Fatalf("position %d asks %v after the end", position, d-left)
		}
		last = d
	}
	if d := a.retryAfterLocked(heldFor(ttl*2/3, 1)); d <= ttl/3 {
		t.Errorf("asks after %v, before the place has to be refreshed, for a lease that is renewed in time", d)
	}
}

// Many waiters for a lock that is held with a far shorter TTL than theirs do not ask for it
// all the time.
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
// no more often than polledAtOnce of them, and a few poll at full pace. Behind another kind
// of client that pace is higher, for the first in the queue alone.
func TestPollingIsBounded(t *testing.T) {
	a := waitsOf(1, time.Hour)
	first, second, deaf := heldFor(time.Hour, 1), heldFor(time.Hour, 2), heldFor(time.Hour, 1)
	first.Report.Holder = store.Holder{Owner: "x", Foreign: true}
	second.Report.Holder, deaf.NoPush = first.Report.Holder, true
	for n := 1; n <= 10*polledAtOnce; n++ {
		a.k.waiters.add(&attempt[[]Question]{r: store.WaitRequest{Lease: store.Lease{Owner: store.NewOwner()}}})
		for _, c := range []struct {
			what  string
			ans   Reply
			every time.Duration
		}{{"first behind a stranger", first, 100 * time.Millisecond}, {"second behind a stranger", second, pollEvery}, {"not told", deaf, pollEvery}} {
			d := a.retryAfterLocked(c.ans)
			if n < polledAtOnce && d != c.every {
				t.Fatalf("%s: %d poll every %v, want every %v", c.what, n, d, c.every)
			}
			if all := c.every / polledAtOnce * time.Duration(n); d < all {
				t.Fatalf("%s: %d poll every %v, want every %v at most", c.what, n, d, all)
			}
		}
	}
}
