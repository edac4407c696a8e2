package filestore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

var _ store.BreakNotifier = (*Store)(nil)

// NotifyBroken implements store.BreakNotifier. Without sockets (see Waiting in the package
// documentation) f is called only for leases that are broken through s itself.
func (s *Store) NotifyBroken(f func(owner string)) (stop func()) { return s.broken.Add(f) }

// listen opens the socket on which other processes tell this one that a lease was broken, if
// NotifyBroken was called and the socket is not open. A breaker does not know the holder's
// process, so it writes to all sockets.
func (s *Store) listen() {
	if !s.broken.Empty() && !s.push.listens() {
		s.push.socket()
	}
}

// keepListening is listen, except that it also opens a new socket if somebody has removed the
// file of the first. Each look at the file costs 3 µs, a twentieth of an Acquire, so only
// renewals call it.
func (s *Store) keepListening() {
	if !s.broken.Empty() {
		s.push.socket()
	}
}

// hear handles a message of another process.
func (s *Store) hear(m message) {
	if m.Broken != "" {
		s.broken.Tell(m.Broken)
		return
	}
	s.bells.answer(m)
}

// BreakLease implements store.Breaker.
func (s *Store) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if left, err = s.breakLease(ctx, r); err == nil && (left > 0 || r.Now) {
		s.broken.Tell(r.Owner)
		s.push.sendAll(message{Broken: r.Owner})
	}
	return left, err
}

// breakLease is BreakLease, except that it does not tell the holder.
func (s *Store) breakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if err := s.gate.Enter(r.Check()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	var ans rule.Answer
	maybe, err := s.write(ctx, func(t *step) error {
		before, err := t.read(r.Name)
		if err != nil {
			return err
		}
		var after rule.Record
		after, ans = rule.BreakLease(before.Record, rule.Break{Owner: r.Owner, Token: r.Token, Now: r.Now, Note: r.Note(), Keep: store.KeepBroken}, t.now)
		if ans.Verdict != rule.Done {
			return nil
		}
		next, _, err := t.advance(r.Name, before.with(after))
		if err != nil {
			return err
		}
		return t.write(r.Name, next)
	})
	switch {
	case err != nil:
		return 0, s.failed(ctx, "break the lease of", r.Name, maybe, err)
	case ans.Verdict != rule.Done:
		return 0, store.ErrNotHeld
	}
	return ans.ExpiresIn, nil
}
