package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// inbox is where the process is notified that its places have been given locks: one watch,
// which begins with the first place. It is always asked for from the present on, because
// etcd serves a watch from the past only every 100 ms.
//
// A message can be lost: while the watch is opened again, or if the transaction that
// wrote it could not. So a mailbox is also told to look, and a waiter watches the place
// before it.
//
// The process is also told here that its leases were broken. So the first holder begins the
// watch, too.
type inbox struct {
	*link
	process string
	// broken is called with the owner of a lease that is said to have been broken, and
	// the revision at which its place was created.
	broken func(owner string, create int64)

	mu     sync.Mutex
	boxes  map[string]*mailbox // by suffix
	ctx    context.Context     // nil until the watch is needed
	stop   context.CancelFunc
	ended  chan struct{}
	closed bool
}

func newInbox(l *link, process string, broken func(owner string, create int64)) *inbox {
	return &inbox{link: l, process: process, broken: broken, boxes: make(map[string]*mailbox)}
}

// push is a message that came, and the revision of the transaction that wrote it; 0: a message may
// have been lost.
type push struct {
	message
	revision int64
}

// mailbox receives messages for one place, of which only the latest counts.
type mailbox struct {
	suffix string
	pushes chan push
}

// put replaces the message in the mailbox. Only one goroutine calls it at a time.
func (m *mailbox) put(p push) {
	select {
	case <-m.pushes:
	default:
	}
	m.pushes <- p
}

// open makes a mailbox for the place that is named after a lease, and starts the watch.
// The caller has to forget it.
func (b *inbox) open(id clientv3.LeaseID) *mailbox {
	m := &mailbox{suffix: suffix(id), pushes: make(chan push, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.boxes[m.suffix] = m
	b.startLocked()
	return m
}

// start starts the watch.
func (b *inbox) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.startLocked()
}

func (b *inbox) startLocked() {
	if b.ctx != nil || b.closed {
		return
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.ended = make(chan struct{})
	go b.run()
}

func (b *inbox) forget(m *mailbox) {
	if m == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.boxes[m.suffix] == m {
		delete(b.boxes, m.suffix)
	}
}

func (b *inbox) close() {
	b.mu.Lock()
	stop, ended := b.stop, b.ended
	b.closed = true
	b.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
}

// run keeps the watch open.
func (b *inbox) run() {
	defer close(b.ended)
	failures := 0 // one after the other
	for {
		at, while := b.members.current()
		ctx, cancel := context.WithCancel(b.ctx)
		stop := context.AfterFunc(while, cancel)
		opened, err := b.watch(ctx, at, tryTime<<min(failures, 4))
		stop()
		moved := ctx.Err() != nil
		cancel()
		if b.ctx.Err() != nil {
			return
		}
		if opened {
			failures = 0
		}
		if !moved {
			b.members.failed(at, err)
			if !clock.Sleep(b.ctx, min(10*time.Millisecond<<min(failures, 10), time.Second)) {
				return
			}
			failures++
		}
	}
}

// watch delivers messages until the watch ends, which has to be open after limit.
//
// The library opens a watch again and again at a member that is paused or gone, and does
// not say so. Other members may have messages meanwhile, so the watch ends then.
func (b *inbox) watch(ctx context.Context, at *member, limit time.Duration) (opened bool, err error) {
	c, err := at.connect(ctx, b.o)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	opening := time.AfterFunc(limit, func() { cancel(errors.New("the watch is not opened in time")) })
	var group sync.WaitGroup
	defer func() {
		opening.Stop()
		cancel(nil)
		group.Wait()
	}()
	prefix := b.layout.inbox(b.process)
	for r := range c.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := r.Err(); err != nil {
			return opened, err
		}
		if r.Created {
			opening.Stop()
			opened = true
			b.lookAll()
			group.Go(func() { endWithConnection(ctx, cancel, c.ActiveConnection()) })
		}
		for _, e := range r.Events {
			if e.Type == clientv3.EventTypePut {
				b.deliver(strings.TrimPrefix(string(e.Kv.Key), prefix), e.Kv.Value, e.Kv.ModRevision)
			}
		}
	}
	if why := context.Cause(ctx); why != nil {
		return opened, why
	}
	return opened, fmt.Errorf("the watch of %q has ended", prefix)
}

// endWithConnection calls cancel when the connection is not there any more. It blocks until
// then, or until ctx ends.
func endWithConnection(ctx context.Context, cancel context.CancelCauseFunc, conn *grpc.ClientConn) {
	if conn.GetState() != connectivity.Ready || conn.WaitForStateChange(ctx, connectivity.Ready) {
		cancel(errors.New("the connection was lost"))
	}
}

// deliver hands a message that came to its mailbox, if there is one, or to b.broken.
func (b *inbox) deliver(suffix string, value []byte, revision int64) {
	b.mu.Lock()
	box := b.boxes[suffix]
	b.mu.Unlock()
	p := push{revision: revision}
	if json.Unmarshal(value, &p.message) != nil {
		return
	}
	broken := store.CheckOwner(p.Broken) == nil
	if broken {
		b.broken(p.Broken, p.Create)
	}
	if box == nil {
		return
	}
	if broken {
		p = push{} // the owner has not noticed yet that it had the lock
	}
	box.put(p)
}

// lookAll makes all waiters look: messages may have been lost before the watch began.
func (b *inbox) lookAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.boxes {
		m.put(push{})
	}
}

// predecessorWatch watches the place before a waiter's, to notice that it is gone although nobody
// said so: its process died, or it is a native client's.
type predecessorWatch struct {
	key    string
	cancel context.CancelFunc
	ended  chan struct{} // closed when key is gone, or when the watch has ended; nil before watch
	seen   atomic.Bool   // key is gone
	group  sync.WaitGroup
}

// onlyDeletes is the option of a watch that sees only that places leave.
func onlyDeletes() clientv3.OpOption { return clientv3.WithFilterPut() }

// watch watches key from the revision after one at which it was there, or all keys of a
// prefix with that option. The watch begins in the past, so etcd may serve it with a delay.
func (o *predecessorWatch) watch(s *link, key string, revision int64, options ...clientv3.OpOption) {
	if o.key == key && o.ended != nil {
		select {
		case <-o.ended:
		default:
			return
		}
	}
	o.stop()
	at, while := s.members.current()
	ctx, cancel := context.WithCancel(while)
	ended := make(chan struct{})
	o.seen.Store(false)
	o.key, o.cancel, o.ended = key, cancel, ended
	o.group.Go(func() {
		defer close(ended)
		c, err := at.connect(ctx, s.o)
		if err != nil {
			return
		}
		for r := range c.Watch(clientv3.WithRequireLeader(ctx), key, append(options, clientv3.WithRev(revision+1))...) {
			if len(r.Events) > 0 {
				o.seen.Store(true)
			}
			if r.Err() != nil || len(r.Events) > 0 {
				return
			}
		}
	})
}

func (o *predecessorWatch) stop() {
	if o.cancel == nil {
		return
	}
	o.cancel()
	o.group.Wait()
	o.cancel, o.ended = nil, nil
}
