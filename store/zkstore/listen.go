package zkstore

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// listener tells an audience whose leases were broken.
type listener struct {
	gate *gate.Gate

	mu       sync.Mutex
	asked    bool // NotifyBroken was called
	audience audience.Audience
	in       map[*zk.Session]bool // the sessions that have a watch
}

// add adds f to the audience, until stop is called.
func (l *listener) add(f func(owner string)) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	return l.audience.Add(f)
}

// listen starts a watch for breaks in the session of t, unless it has one. The watch lasts
// as long as the session. The caller is counted in the gate.
func (l *listener) listen(t tree) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked || l.in[t.Session] {
		return
	}
	if l.in == nil {
		l.in = make(map[*zk.Session]bool)
	}
	l.in[t.Session] = true
	l.gate.Stay()
	go func() {
		defer l.gate.Leave()
		ctx, cancel := l.gate.Until(context.Background())
		defer cancel()
		l.follow(ctx, t)
		select { // the session stays in l.in: without the right to look, a new watch would fail, too
		case <-t.Over:
		case <-ctx.Done():
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.in, t.Session)
	}()
}

// follow tells the audience of each lease that is broken. It returns if the session is over,
// ctx ends or the server refuses.
func (l *listener) follow(ctx context.Context, t tree) {
	told := int64(0)
	for {
		watch := zk.WatchExists(t.notesDir()) // it also tells when the node is made
		answers, err := t.Once(ctx, watch.Request())
		if err != nil || answers[0].Err != nil && !errors.Is(answers[0].Err, zk.ErrNoNode) && !zk.Broken(answers[0].Err) {
			return
		}
		n, _, err := t.Get(ctx, t.notesDir())
		if err != nil {
			return
		}
		now := decodeJSON[announced](n.Data)
		for _, owner := range now.since(told) {
			l.audience.Tell(owner)
		}
		told = now.Count
		select {
		case <-watch.Over:
		case <-t.Over:
			return
		case <-ctx.Done():
			return
		}
	}
}
