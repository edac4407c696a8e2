// Package gather lets the steps that the goroutines of a process make at the same time go to a
// server together.
package gather

import (
	"runtime"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/gate"
)

// Sender sends steps together. Its methods are safe for concurrent use. The callers of Alone and
// Add are counted at the gate.
type Sender[S comparable] struct {
	gate *gate.Gate
	// send sends one batch, which it takes when it can be sent.
	send func(take func() []S)

	mu sync.Mutex
	g  gathering[S]
}

// NewSender returns a sender whose batches send sends. It calls take once, as late as it can. take
// returns nothing if all steps were withdrawn. A batch does not end with the context of a
// caller, and has none of its values.
func NewSender[S comparable](g *gate.Gate, l Limits, send func(take func() []S)) *Sender[S] {
	return &Sender[S]{gate: g, send: send, g: gathering[S]{Limits: l}}
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
func (s *Sender[S]) Add(step S) {
	s.mu.Lock()
	start := s.g.add(step)
	s.mu.Unlock()
	if start {
		s.gate.Stay()
		go s.run()
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
func (s *Sender[S]) run() {
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
		s.send(func() []S {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.g.take()
		})
	}
}
