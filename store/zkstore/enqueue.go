package zkstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// enqueue makes a place at the end of the queue of a lock. If ctx ends first, the place
// is removed in the background.
func (s *places) enqueue(ctx context.Context, l store.Lease) (*place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, leave, err := s.tree(ctx, l.TTL)
	if err != nil {
		return nil, err
	}
	p := &place{tree: t, leave: leave, dir: t.dir(l.Name), record: recordOf(l)}
	m := &making{place: p, mark: newMark(l.Owner), spec: specOf(l.Kind), weight: max(l.Weight, 1)}
	if m.spec == rule.Mutex {
		m.after = s.vacant.take(l.Name, t.Zxid(), s.clock.Now())
	}
	if err := m.send(ctx); err != nil {
		leave()
		return nil, err
	}
	if answers, err := m.sent.Wait(ctx); err == nil && m.take(answers) == nil {
		return p, nil
	}
	if err := p.make(ctx, s, func() error { return m.run(ctx) }); err != nil {
		return nil, err
	}
	return p, nil
}

// make calls do, which makes the node of the place, on a goroutine of its own. If ctx ends
// first, the place is removed in the background.
func (p *place) make(ctx context.Context, s *places, do func() error) error {
	done := make(chan error) // not buffered: somebody has the place, the caller or the background
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		err := do()
		if err != nil {
			p.leave()
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
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remove removes the node of a place in the background.
func (s *places) remove(p *place) {
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		defer p.leave()
		p.unwatch()
		if _, _, err := p.delete(context.Background()); err != nil && !p.Ended() {
			s.o.Logger.Warn("cannot remove a place in the queue of a lock", "node", p.path(), "err", err)
		}
	}()
}

// expired ends a lease that nobody has renewed, or a place that nobody has claimed. Timers
// call it.
func (s *places) expired(p *place) {
	if s.gate.Enter() == nil {
		defer s.gate.Leave()
		s.remove(p)
	}
}
