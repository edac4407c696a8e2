package etcdstore

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/gather"
	"github.com/leasehold-dev/leasehold/store"
)

// batches sends transactions of a busy process to the cluster together: each is nested in one
// that has no conditions. So the cluster agrees on them once.
type batches struct {
	link   *link
	sender *gather.Sender[*part]

	// waiting are the prefixes of the locks that have a part whose caller waits. A batch has one
	// part of a lock at most: the conditions of all are judged before the first of them changes
	// anything.
	waiting sync.Map
}

// part is a transaction on the keys of one lock. It changes no key of another lock.
type part struct {
	txn

	// These are set when done is closed.
	done chan struct{}
	// refused is set if the cluster refused the batch, perhaps for another part. ambiguous still
	// counts then.
	refused bool
	reply
}

// reply is the result of commit.
type reply struct {
	r         *clientv3.TxnResponse
	ambiguous bool
	err       error
}

// mostParts is how many transactions go together. etcd counts these and the operations of the
// largest of them.
const mostParts = 32

// mostAlone is how many steps go alone at once before others go together.
const mostAlone = 4

func newBatches(l *link, g *gate.Gate, alone int) *batches {
	b := &batches{link: l}
	// While one batch is agreed on, the goroutines that another has woken make the next.
	b.sender = gather.NewSender(g, gather.Limits{Alone: alone, Senders: 2, Steps: mostParts}, b.send)
	return b
}

// commit is link.commit for a transaction of one lock that changes no key of another lock. It
// can go with those of others. The caller is counted at the gate.
func (b *batches) commit(ctx context.Context, prefix string, t txn) (r *clientv3.TxnResponse, ambiguous bool, err error) {
	if b.link.unchecked.Load() {
		return b.link.commit(ctx, t)
	}
	if b.sender.Alone() {
		defer b.sender.Left()
		return b.link.commit(ctx, t)
	}
	if _, there := b.waiting.LoadOrStore(prefix, true); there { // it would wait for a batch of its own
		return b.link.commit(ctx, t)
	}
	defer b.waiting.Delete(prefix)
	p := &part{txn: t, done: make(chan struct{})}
	limited, cancel := context.WithTimeoutCause(ctx, b.link.o.Timeout, store.ErrTimeLimit)
	defer cancel()
	b.sender.Add(p)
	select {
	case <-p.done:
		if p.refused {
			r, ambiguous, err = b.link.commit(limited, t)
			return r, ambiguous || p.ambiguous, err
		}
		return p.r, p.ambiguous, p.err
	case <-limited.Done():
		return nil, !b.sender.Withdraw(p), fmt.Errorf("no answer: %w: %w", context.Cause(limited), limited.Err())
	}
}

// send sends one batch.
func (b *batches) send(take func() []*part) {
	parts := take()
	if len(parts) == 0 {
		return
	}
	all := txn{then: make([]operation, len(parts))}
	for i, p := range parts {
		all.then[i] = nested(p.txn)
	}
	r, ambiguous, err := b.link.commit(context.Background(), all)
	// What the cluster refuses may be one part only, such as one whose lease has just ended. The
	// others are made alone, also if an earlier try may have made them: they find that.
	refused := r == nil && len(parts) > 1 && !faultOf(err).again
	for i, p := range parts {
		p.refused, p.reply = refused, reply{ambiguous: ambiguous, err: err}
		if r != nil {
			p.r = (*clientv3.TxnResponse)(r.Responses[i].GetResponseTxn())
			p.r.Header = r.Header
		}
		close(p.done)
	}
}
