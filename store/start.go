package store

import "context"

// Starter is an Engine that can carry out calls without a goroutine that waits for each. It keeps
// the contract of the Store's methods of the same names, and bounds the calls itself.
type Starter interface {
	Engine
	StartAcquire(ctx context.Context, r AcquireRequest, done func(Grant, error)) (started bool)
	StartRelease(ctx context.Context, r ReleaseRequest, done func(error)) (started bool)
	Flush()
}

// StartAcquire begins an Acquire for a caller with many requests at a time, such as a server, and
// does not block. The caller calls Flush when it has started all that it has to ask.
//
// It returns false, and does nothing, if the request is invalid or the store cannot do without a
// goroutine: the caller then calls Acquire. Otherwise done is called once with the outcome, on any
// goroutine, also before StartAcquire returns. It must not block. If ctx ends, the attempt is given
// up when the store's answer comes.
func (s *Store) StartAcquire(ctx context.Context, r AcquireRequest, done func(Grant, error)) (started bool) {
	e := s.starter(r.Check(s.Caps()))
	if e == nil {
		return false
	}
	started = e.StartAcquire(ctx, r, func(g Grant, err error) {
		defer s.gate.Leave()
		done(g, err)
	})
	if !started {
		s.gate.Leave()
	}
	return started
}

// StartRelease is StartAcquire for a Release, which goes on if ctx ends.
func (s *Store) StartRelease(ctx context.Context, r ReleaseRequest, done func(error)) (started bool) {
	e := s.starter(r.Check(s.Caps()))
	if e == nil {
		return false
	}
	r.Renewed = r.Renewed || r.Repeated
	started = e.StartRelease(ctx, r, func(err error) {
		defer s.gate.Leave()
		done(err)
	})
	if !started {
		s.gate.Leave()
	}
	return started
}

// starter returns the engine, and counts a call, unless the call is invalid or cannot be started.
func (s *Store) starter(invalid error) Starter {
	e, ok := s.engine.(Starter)
	if !ok || invalid != nil || s.gate.Enter() != nil {
		return nil
	}
	return e
}

// Flush sends the calls that were started. It does not block.
func (s *Store) Flush() {
	if e, ok := s.engine.(Starter); ok {
		e.Flush()
	}
}
