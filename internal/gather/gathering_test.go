package gather

import (
	"runtime"
	"slices"
	"testing"
	"weak"
)

// way is how a step goes to the server.
type way string

const (
	alone  way = "alone"
	starts way = "in a batch that is to be started"
	queued way = "in a batch of a goroutine that sends batches"
)

func wayOf(g *gathering[int], step int) way {
	switch {
	case g.goesAlone():
		return alone
	case g.add(step):
		return starts
	}
	return queued
}

// A few steps go alone. The next ones start batches, as many as may be under way, and the others
// queue for these.
func TestGathering(t *testing.T) {
	g := gathering[int]{Limits: Limits{Alone: 4, Senders: 2, Steps: 32}}
	for range g.Alone {
		if got := wayOf(&g, 0); got != alone {
			t.Errorf("one of the first steps: %s, want %s", got, alone)
		}
	}
	for i, want := range []way{starts, starts, queued, queued} {
		if got := wayOf(&g, 2+i); got != want {
			t.Errorf("step %d: %s, want %s", 2+i, got, want)
		}
	}
	batch := func(want ...int) {
		t.Helper()
		if !g.more() {
			t.Fatalf("there is no batch, want %v", want)
		}
		if got := g.take(); !slices.Equal(got, want) {
			t.Errorf("a batch of %v, want %v", got, want)
		}
	}
	batch(2, 3, 4, 5)
	for range g.Alone {
		g.left()
	}
	if got := wayOf(&g, 6); got != queued {
		t.Errorf("a step that could go alone, while batches are under way: %s, want %s", got, queued)
	}
	g.add(7)
	if !g.withdraw(6) || g.withdraw(6) || g.withdraw(2) {
		t.Error("a step can be withdrawn once, and as long as it is queued")
	}
	batch(7)
	if g.more() {
		t.Error("there is a batch without steps")
	}
	if got := wayOf(&g, 8); got != starts {
		t.Errorf("a step after one of two senders has ended: %s, want %s", got, starts)
	}
	batch(8)
	for range 2 {
		if g.more() {
			t.Error("there is a batch without steps")
		}
	}
	if got := wayOf(&g, 9); got != alone {
		t.Errorf("a step when nothing is under way: %s, want %s", got, alone)
	}
	g.left()
	g.busy = true
	if got := wayOf(&g, 10); got != starts {
		t.Errorf("a step after a batch of several, when nothing is under way: %s, want %s", got, starts)
	}
	batch(10)
	if g.more() || g.busy {
		t.Error("the process is still busy after a batch of one step")
	}
}

// A batch is no longer than the server can do well. What is left makes the next.
func TestLongQueue(t *testing.T) {
	g := gathering[int]{Limits: Limits{Senders: 1, Steps: 32}}
	for i := range g.Steps + 3 {
		g.add(i)
	}
	for _, want := range []int{g.Steps, 3} {
		if !g.more() {
			t.Fatal("there is no batch")
		}
		batch := g.take()
		if len(batch) != want {
			t.Errorf("a batch of %d steps, want %d", len(batch), want)
		}
		g.add(1000) // does not change what was taken
		if slices.Contains(batch, 1000) {
			t.Error("a batch that was taken has a later step")
		}
		g.withdraw(1000)
	}
}

// A queue that was long does not keep the steps that it had.
func TestTakenStepsAreForgotten(t *testing.T) {
	g := gathering[*[64]byte]{Limits: Limits{Senders: 1, Steps: 32}}
	var first weak.Pointer[[64]byte]
	for i := range 100 {
		step := new([64]byte)
		if i == 0 {
			first = weak.Make(step)
		}
		g.add(step)
	}
	for g.more() {
		g.take()
	}
	runtime.GC()
	if first.Value() != nil {
		t.Error("a step that was taken is still in memory")
	}
	runtime.KeepAlive(&g)
}
