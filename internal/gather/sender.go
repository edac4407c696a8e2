// Package gather lets the steps that the goroutines of a process make at the same time go to a
// server together.
package gather

import (
	"context"
	"runtime"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/gate"
)

// Sender sends steps together. Its methods are safe for concurrent use. The callers of Alone and
// Add are counted at the gate.
type Sender[S comparable] struct {
	gate *gate.Gate
	// send sends one batch, which it takes when it can be sent.
	send func(ctx context.Context, take func() []S)
	fits func(batch []S, s S) bool

	mu sync.Mutex
	g  gathering[S]
}

// NewSender returns a sender whose batches send sends: it calls take once, when the batch can be
// sent, and gets no steps if they have left the queue. A step is in a batch if it fits those
// before it.
func NewSender[S comparable](g *gate.Gate, l Limits, fits func(batch []S, s S) bool, send func(ctx context.Context, take func() []S)) *Sender[S] {
	return &Sender[S]{gate: g, send: send, fits: fits, g: gathering[S]{Limits: l}}
}

// Alone reports whether a step is to be made alone, at once, by the caller, who then calls Left.
// If not, the step goes with others: see Add.
func (s *Sender[S]) Alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.g.goesAlone()
}

// Left ends a step that was made alone.
func (s *Sender[S]) Left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.left()
}

// Add adds a step to the queue for the next batch. It does not block.
func (s *Sender[S]) Add(ctx context.Context, step S) {
	s.mu.Lock()
	start := s.g.add(step)
	s.mu.Unlock()
	if start {
		s.gate.Stay()
		go s.run(context.WithoutCancel(ctx))
	}
}

// Withdraw takes a step out of the queue. It returns false if the step was taken for a batch.
func (s *Sender[S]) Withdraw(step S) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.g.withdraw(step)
}

// Queued returns how many steps wait for a batch.
func (s *Sender[S]) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.g.queue)
}

// run sends batches until no step is left.
func (s *Sender[S]) run(ctx context.Context) {
	defer s.gate.Leave()
	for {
		// The goroutines that the last batch has woken add their next steps first.
		runtime.Gosched()
		s.mu.Lock()
		more := s.g.more()
		s.mu.Unlock()
		if !more {
			return
		}
		s.send(ctx, func() []S {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.g.take(s.fits)
		})
	}
}
