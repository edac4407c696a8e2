package session

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// Batch is some requests of a session that have left together. The server answers them in
// their order.
type Batch struct {
	session *Session
	answers []Answer
	room    [2]Answer // for few answers
	left    atomic.Int32
	done    chan struct{} // closed when each of them is answered, or never will be
}

// Send sends requests together once there is a connection. If that breaks, the answers to
// some of them are lost.
func (ss *Session) Send(ctx context.Context, requests ...Request) (*Batch, error) {
	w, err := ss.link.reach(ctx, true)
	if err != nil {
		return nil, err
	}
	b := newBatch(make(chan struct{}), len(requests))
	b.session = ss
	w.ask(b, requests)
	return b, nil
}

// newBatch returns a batch of n requests that closes done.
func newBatch(done chan struct{}, n int) *Batch {
	b := &Batch{done: done}
	if b.answers = b.room[:]; n > len(b.room) {
		b.answers = make([]Answer, n)
	}
	b.answers = b.answers[:n]
	b.left.Store(int32(n))
	for i := range b.answers {
		b.answers[i].Err = zk.ErrConnectionClosed
	}
	return b
}

// Wait waits for the answers. If the connection breaks before, the errors of those that
// are lost are Broken.
func (b *Batch) Wait(ctx context.Context) ([]Answer, error) {
	select {
	case <-b.done:
		return b.answers, nil
	case <-b.session.Over:
		return nil, b.session.Reason()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer takes the answer to the request with that index.
func (b *Batch) answer(i int, a Answer) {
	b.answers[i] = a
	b.lose(1)
}

// lose notes that there will be no further answer to n requests.
func (b *Batch) lose(n int) {
	if b.left.Add(-int32(n)) == 0 {
		close(b.done)
	}
}

// Ask sends requests that can be repeated, together, and waits for all answers. It repeats
// them until the connection does not break.
func (ss *Session) Ask(ctx context.Context, requests ...Request) ([]Answer, error) {
	for {
		b, err := ss.Send(ctx, requests...)
		if err != nil {
			return nil, err
		}
		answers, err := b.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(answers, func(a Answer) bool { return Broken(a.Err) }) {
			return answers, nil
		}
	}
}
