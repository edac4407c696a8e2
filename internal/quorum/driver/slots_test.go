package driver

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// three is a cluster of three nodes that reply to each question, and record it.
type three struct {
	answer func(node int, q Question) Reply
	mu     sync.Mutex
	asked  [3][]Question
	// first is closed when the driver has received the reply of the first node to its first
	// question. The other nodes reply after it. received gets an element for each reply that
	// the driver has received.
	first    chan struct{}
	received chan int
}

type oneOfThree struct {
	all   *three
	index int
}

func (n oneOfThree) Addr() string { return "node" }
func (n oneOfThree) Flush()       {}

func (n oneOfThree) Put(c Call[Question]) error {
	q := c.Payload
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.all.asked[n.index] = append(n.all.asked[n.index], q)
	begins := n.index == 0 && len(n.all.asked[0]) == 1
	go func() {
		if !begins {
			<-n.all.first
		}
		c.To.Receive(n.index, c.Tag, n.all.answer(n.index, q))
		if begins {
			close(n.all.first)
		}
		n.all.received <- n.index
	}()
	return nil
}

// askThree returns a driver of three such nodes.
func askThree(answer func(node int, q Question) Reply) (*Driver[Question], *three) {
	all := &three{answer: answer, first: make(chan struct{}), received: make(chan int, 64)}
	k := &Driver[Question]{
		Encode:      func(q, _ Question) Question { return q },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}
	for i := range 3 {
		k.Nodes = append(k.Nodes, oneOfThree{all, i})
	}
	return k, all
}

// questions waits for three replies, and returns what the nodes have been asked by then. It
// includes what the driver asks because of a reply, since it does so before Receive returns.
func (n *three) questions() [3][]Question {
	for range 3 {
		<-n.received
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := n.asked
	for i := range asked {
		asked[i] = slices.Clone(asked[i])
	}
	return asked
}

var (
	yes    = Reply{Kind: quorum.Yes, Token: 5, Report: store.NodeOutcome{Outcome: store.Granted}}
	absent = Reply{Kind: quorum.Absent, Report: store.NodeOutcome{Outcome: store.Absent}}
)

// A node that granted other slots than the majority is asked for the slots of the majority,
// which the grant names.
func TestSlotsAreAgreedOn(t *testing.T) {
	k, nodes := askThree(func(node int, q Question) Reply {
		a := yes
		if a.Slots = "1,4"; node == 0 && !q.Exact {
			a.Slots = "0,4"
		}
		return a
	})
	r := store.Lease{Name: "a", Owner: "deploy", TTL: time.Minute, Kind: store.Semaphore(5), Weight: 2, Slots: []int64{2, 3}}
	g, err := k.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil || !slices.Equal(g.Lease.Slots, []int64{1, 4}) || g.Slot != 1 {
		t.Errorf("granted %+v, %v, want slots 1,4 of the majority", g, err)
	}
	asked := nodes.questions()
	for i, questions := range asked {
		if q := questions[0]; q.Op != quorum.Acquire || q.Lease.Slots != nil || q.Exact {
			t.Errorf("node %d is asked %+v, want any slots", i, q)
		}
	}
	if len(asked[0]) != 2 || len(asked[1]) != 1 || len(asked[2]) != 1 {
		t.Fatalf("asked %+v, want two questions to the first node and one to each of the others", asked)
	}
	if q := asked[0][1]; q.Op != quorum.Acquire || !slices.Equal(q.Lease.Slots, []int64{1, 4}) || !q.Exact || q.Waits || !q.Again {
		t.Errorf("the first node is then asked %+v, want a repeated acquire of exactly slots 1,4", q)
	}
}

// A downgrade to which too few nodes reply, or that too few execute, releases nothing.
func TestDowngradeReleasesNothing(t *testing.T) {
	unknown := Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.TimedOut}}
	other := Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.WrongType, Err: &store.KindError{InUse: store.Semaphore(2)}}}
	for name, c := range map[string]struct {
		answers [3]Reply
		want    error
	}{
		"done":                   {[3]Reply{yes, yes, absent}, nil},
		"the lease is gone":      {[3]Reply{yes, absent, absent}, store.ErrNotHeld},
		"too few nodes reply":    {[3]Reply{yes, unknown, absent}, store.ErrQuorum},
		"in use as another kind": {[3]Reply{yes, other, absent}, store.ErrKindMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			k, nodes := askThree(func(node int, q Question) Reply { return c.answers[node] })
			r := store.Lease{Name: "a", Owner: "deploy", TTL: time.Minute, Kind: store.ReadWrite, Weight: store.ReadWriteLimit}
			if g, err := Downgrade(t.Context(), k, r); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err == nil && g.Token != 5 {
				t.Errorf("downgrade: %+v, %v, want %v, or token 5", g, err, c.want)
			}
			for i, questions := range nodes.questions() {
				if len(questions) != 1 || questions[0].Op != quorum.Acquire || !questions[0].Downgrade {
					t.Errorf("node %d is asked %+v, want only the downgrade", i, questions)
				}
			}
		})
	}
}
