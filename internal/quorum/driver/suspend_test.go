package driver

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// recorder is a node that records its calls and replies as the test wants.
type recorder struct {
	index int
	asked chan Question
	says  func(Question) (Reply, bool) // false: no reply
}

func (r *recorder) Addr() string { return "node" }

func (r *recorder) Put(c Call[Question]) error {
	q := c.Payload
	if q.Op == quorum.Acquire {
		r.asked <- q
	}
	if a, ok := r.says(q); ok {
		go c.To.Receive(r.index, c.Tag, a)
	}
	return nil
}

func (r *recorder) Flush() {}

// recorders returns a driver over three nodes, and the nodes.
func recorders(now clock.Clock, says func(node int, q Question) (Reply, bool)) (*Driver[Question], []*recorder) {
	k := &Driver[Question]{
		Encode:      func(q, _ Question) Question { return q },
		NodeTimeout: func(time.Duration) time.Duration { return 50 * time.Millisecond },
		Clock:       now,
		Logger:      slog.New(slog.DiscardHandler),
	}
	var nodes []*recorder
	for i := range 3 {
		nodes = append(nodes, &recorder{i, make(chan Question, 100), func(q Question) (Reply, bool) { return says(i, q) }})
		k.Nodes = append(k.Nodes, nodes[i])
	}
	return k, nodes
}

func isTaken(int, Question) (Reply, bool) {
	return Reply{Kind: quorum.No, Position: 1, Report: store.NodeOutcome{Outcome: store.Taken, Holder: store.Holder{Owner: "x"}, ExpiresIn: time.Hour}}, true
}

// While a machine is suspended, the places of a waiter may end. It refreshes them soon after it
// resumes, and does not wait for a timer, which stood still meanwhile.
func TestWaiterRefreshesAfterASuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var slept atomic.Int64
		now := clock.Func(func() clock.Instant { return clock.Instant(time.Since(began)) + clock.Instant(slept.Load()) + 1 })
		k, nodes := recorders(now, isTaken)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := k.Wait(ctx, store.WaitRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwnerAt(began), TTL: time.Minute}}, nil)
			done <- err
		}()
		for _, n := range nodes {
			<-n.asked
		}
		time.Sleep(time.Second)
		slept.Add(int64(2 * time.Minute))
		resumed := time.Now()
		for _, n := range nodes {
			<-n.asked
		}
		if took := time.Since(resumed); took > suspendCheck {
			t.Errorf("the places were refreshed %v after the machine resumed, want %v at most", took, suspendCheck)
		}
		stop()
		<-done
		time.Sleep(suspendCheck) // the watch ends with the last waiter
		synctest.Wait()
		if k.waiters.suspend.running {
			t.Error("the watch for suspends goes on without a waiter")
		}
	})
}

// A waiter that hands over its part of the nodes rejoins at the end of the queue, since the next
// waiter may reach a majority. That holds also if the wall clock was set back while it waited.
func TestWaiterThatHandsOverComesLast(t *testing.T) {
	for _, back := range []time.Duration{0, time.Hour} {
		t.Run(back.String(), func(t *testing.T) { handsOver(t, back) })
	}
}

func handsOver(t *testing.T, back time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		before := func() time.Time { return time.Now().Add(back) } // the clock was set back
		now := clock.Func(func() clock.Instant { return clock.Instant(time.Now().UnixNano()) })
		k, nodes := recorders(now, func(node int, q Question) (Reply, bool) {
			switch {
			case node > 0:
				return Reply{}, false
			case q.QueueOnly:
				return Reply{Kind: quorum.Absent, Position: 1, Report: store.NodeOutcome{Outcome: store.Absent}}, true
			}
			return Reply{Kind: quorum.Yes, Token: 1, Report: store.NodeOutcome{Outcome: store.Granted}}, true
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := k.Wait(ctx, store.WaitRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwnerAt(before()), TTL: time.Minute}}, nil)
			done <- err
		}()
		first := <-nodes[0].asked
		other := store.NewOwnerAt(before().Add(time.Millisecond))
		second := <-nodes[0].asked
		if !second.QueueOnly || second.Lease.Owner == first.Lease.Owner {
			t.Errorf("after %+v it asks %+v, want a place in the queue for a new owner", first, second)
		}
		if !store.Before(other, second.Lease.Owner) {
			t.Error("it rejoins ahead of a waiter that arrived in the meantime")
		}
		stop()
		<-done
	})
}
