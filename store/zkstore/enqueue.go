package zkstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
)

// enqueue makes a place at the end of the queue of a lock. If ctx ends first, the place
// is removed in the background.
func (s *Store) enqueue(ctx context.Context, l store.Lease, spare int) (*place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, leave, err := s.tree(ctx, l.TTL)
	if err != nil {
		return nil, err
	}
	p := &place{tree: t, leave: leave, dir: t.dir(l.Name), record: recordOf(l, spare)}
	done := make(chan error) // not buffered: somebody has the place, the caller or the background
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		err := p.create(ctx, newMark(l.Owner), specOf(l.Kind), max(l.Weight, 1))
		if err != nil {
			leave()
		}
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil {
				s.remove(p)
			}
		}
	}()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return p, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// remove removes the node of a place in the background.
func (s *Store) remove(p *place) {
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		defer p.leave()
		if _, err := p.delete(context.Background()); err != nil && !p.Ended() {
			s.o.Logger.Warn("cannot remove a place in the queue of a lock", "node", p.path(), "err", err)
		}
	}()
}

// expired ends a lease that nobody has renewed.
func (s *Store) expired(l *lease) { s.remove(l.place.Load()) }
