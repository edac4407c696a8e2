package gocron

import (
	"context"
	"errors"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-dev/leasehold"
)

// ErrNotLeader means that this scheduler does not lead.
var ErrNotLeader = errors.New("this scheduler is not the leader")

// Elector is a gocron.Elector, for gocron.WithDistributedElector. It is safe for
// concurrent use.
type Elector struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	term *leasehold.Lease // of the present or the last term; nil: none
	err  error            // of a candidacy that has ended
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector makes a candidate of e, which stands until Close. It does not block.
//
// When the leader loses its lease, gocron starts no more jobs here, but those that run go
// on: LockOptions.Notice of the election is the time that they have before another
// scheduler can start jobs. Set it to the length of the longest job, or use a Locker for
// jobs that must not overlap.
func NewElector(e *leasehold.Election) *Elector {
	ctx, cancel := context.WithCancel(context.Background())
	el := &Elector{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(el.done)
		err := e.Run(ctx, func(ctx context.Context, term *leasehold.Lease) error {
			el.mu.Lock()
			el.term = term
			el.mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		})
		el.mu.Lock()
		defer el.mu.Unlock()
		el.err = err
	}()
	return el
}

// IsLeader returns nil if this scheduler leads. It reads the clock and does not block, so a
// process that was stopped for longer than its lease starts no job when it goes on. The
// error matches ErrNotLeader, and also that of leasehold.Election.Run if the candidacy has
// ended. gocron tells nobody of it.
func (el *Elector) IsLeader(context.Context) error {
	el.mu.Lock()
	defer el.mu.Unlock()
	switch {
	case el.err != nil:
		return errors.Join(ErrNotLeader, el.err)
	case el.term == nil || el.term.Context().Err() != nil || el.term.Err() != nil:
		return ErrNotLeader
	}
	return nil
}

// Close resigns, and blocks until that is done. Stop the scheduler first, so that no job
// runs when the next leader begins. A second call does nothing.
func (el *Elector) Close() error {
	el.cancel()
	<-el.done
	return nil
}
