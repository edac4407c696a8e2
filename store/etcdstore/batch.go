package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/gather"
)

// batches sends transactions of a busy process to the cluster together: each is nested in one
// that has no conditions. So the cluster agrees on them once.
type batches struct {
	link   *link
	sender *gather.Sender[*part]
	// apart is how many of the next transactions go alone, since one of a batch was refused:
	// the cluster then refuses all.
	apart atomic.Int32

	mu sync.Mutex
	// queued are the prefixes of the locks that have a step here. A batch has one step of a lock, so
	// a second one would wait for a batch of its own: it goes alone.
	queued map[string]bool
}

// part is a transaction that concerns one lock, and no key that one of another lock changes.
type part struct {
	txn
	prefix string // of the keys of the lock

	// These are set when done is closed.
	done  chan struct{}
	again bool // it was refused with the others; doubt is still of use then
	reply
}

// reply is the result of commit.
type reply struct {
	r     *clientv3.TxnResponse
	doubt bool
	err   error
}

// mostParts is how many transactions go together, with a few operations each: etcd allows 128
// in all, if it was not set up otherwise.
const mostParts = 32

// apartAfter is how many transactions go alone after a batch that was refused.
const apartAfter = 64

// mostAlone is how many steps go alone at once before others go together.
const mostAlone = 4

func newBatches(l *link, g *gate.Gate, alone int) *batches {
	b := &batches{link: l, queued: make(map[string]bool)}
	// While one batch is agreed on, the goroutines that another has woken make the next.
	b.sender = gather.NewSender(g, gather.Limits{Alone: alone, Senders: 2, Steps: mostParts}, fits, b.send)
	return b
}

// fits reports whether no other transaction of the batch concerns the same lock: the
// conditions of all are judged before the first of them changes anything.
func fits(batch []*part, p *part) bool {
	return !slices.ContainsFunc(batch, func(o *part) bool { return o.prefix == p.prefix })
}

// commit is link.commit for a transaction of one lock that changes no key of another lock. It
// can go with those of others. The caller is counted at the gate.
func (b *batches) commit(ctx context.Context, prefix string, t txn) (r *clientv3.TxnResponse, doubt bool, err error) {
	if b.link.unchecked.Load() {
		return b.link.commit(ctx, t)
	}
	if b.apart.Load() > 0 {
		b.apart.Add(-1)
		return b.link.commit(ctx, t)
	}
	if b.sender.Alone() {
		defer b.sender.Left()
		return b.link.commit(ctx, t)
	}
	if !b.claim(prefix) {
		return b.link.commit(ctx, t)
	}
	defer b.release(prefix)
	p := &part{txn: t, prefix: prefix, done: make(chan struct{})}
	limited, cancel := context.WithTimeout(ctx, b.link.o.Timeout)
	defer cancel()
	b.sender.Add(ctx, p)
	select {
	case <-p.done:
		if p.again {
			r, doubt, err = b.link.commit(limited, t)
			return r, doubt || p.doubt, err
		}
		return p.r, p.doubt, p.err
	case <-limited.Done():
		return nil, !b.sender.Withdraw(p), fmt.Errorf("no answer within %v: %w", b.link.o.Timeout, limited.Err())
	}
}

// claim reports whether a step of the lock can go with those of others. Then release follows.
func (b *batches) claim(prefix string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queued[prefix] {
		return false
	}
	b.queued[prefix] = true
	return true
}

func (b *batches) release(prefix string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.queued, prefix)
}

// send sends one batch.
func (b *batches) send(ctx context.Context, take func() []*part) {
	parts := take()
	if len(parts) == 0 {
		return
	}
	all := txn{then: make([]operation, len(parts))}
	for i, p := range parts {
		all.then[i] = nested(p.txn)
	}
	r, doubt, err := b.link.commit(ctx, all)
	// What the cluster refuses may be one of them only, such as one whose lease has just ended. The
	// others are made alone, also if an earlier try may have made them: they find that.
	refused := r == nil && !faultOf(err).again
	if refused {
		b.apart.Store(apartAfter)
	}
	for i, p := range parts {
		p.again, p.reply = refused, reply{doubt: doubt, err: err}
		if r != nil {
			p.r = (*clientv3.TxnResponse)(r.Responses[i].GetResponseTxn())
			p.r.Header = r.Header
		}
		close(p.done)
	}
}
