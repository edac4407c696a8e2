package etcdstore

import (
	"context"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// lookout watches the place before a waiter's, to notice that it is gone although nobody
// said so: its process died, or it is a native client's.
type lookout struct {
	key    string
	cancel context.CancelFunc
	ended  chan struct{} // closed when key is gone, or when the watch has ended
	seen   atomic.Bool   // key is gone
	group  sync.WaitGroup
}

// gone returns a channel that is closed when it is time to look. It is nil before watch.
func (o *lookout) gone() <-chan struct{} {
	return o.ended
}

// onlyDeletes is the option of a watch that sees only that places leave, and changesToo that of one that sees
// them enter, too.
func onlyDeletes() clientv3.OpOption { return clientv3.WithFilterPut() }
func changesToo() clientv3.OpOption  { return func(*clientv3.Op) {} }

// watch watches key from the revision after one at which it was there, or all keys of a
// prefix with that option. The watch begins in the past, so etcd may serve it with a delay.
func (o *lookout) watch(s *link, key string, revision int64, options ...clientv3.OpOption) {
	if o.key == key && o.ended != nil {
		select {
		case <-o.ended:
		default:
			return
		}
	}
	o.stop()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	o.seen.Store(false)
	o.key, o.cancel, o.ended = key, cancel, ended
	at, changed := s.members.current()
	o.group.Go(func() {
		defer close(ended)
		select {
		case <-changed:
			return
		default:
		}
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			select {
			case <-changed:
				cancel()
			case <-stop:
			}
		}()
		c, err := at.connect(s.o)
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

// stop ends the watch. o may be nil.
func (o *lookout) stop() {
	if o == nil || o.cancel == nil {
		return
	}
	o.cancel()
	o.group.Wait()
	o.cancel, o.ended = nil, nil
}
