package majority

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

func (*silent) Put(Call) error { return nil }

// Nodes answer at the same time, and whoever brings news may be held up before it is
// told. What is told last is the latest all the same.
func TestLatestNewsIsToldLast(t *testing.T) {
	k := &Keeper{
		Nodes:       []Node{&silent{}, &silent{}, &silent{}},
		Encode:      func(q Question, _ any) any { return []Question{q} },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}
	now := k.Clock.Now()
	a := k.begin(store.Request{Name: "a", Owner: store.NewOwnerAt(time.Unix(2000, 0)), TTL: time.Minute}, now)
	var positions []int
	a.mu.Lock()
	a.core.BeginWait(k.config(a.r), a.r.TTL, now, false)
	a.queue = queued{waits: true, reason: func(err error) {
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
		a.Answer(node, int(quorum.Acquire), Answer{
			Kind: quorum.No, Position: position,
			Said: store.NodeOutcome{Outcome: store.Taken, Holder: holder, ExpiresIn: time.Minute},
		})
	}
	told := func(position int) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.queue.told.position == position
	}

	answer(0, 1)
	answer(1, 1)
	a.telling.Lock() // as who was held up while telling something
	var held sync.WaitGroup
	for _, position := range []int{3, 2, 1} {
		held.Go(func() { answer(2, position) })
		for !told(position) {
			runtime.Gosched()
		}
	}
	a.telling.Unlock()
	held.Wait()
	if !slices.Equal(positions, []int{1}) {
		t.Errorf("told of the positions %v, where 3 and 2 had become old before anything could be told", positions)
	}
}
