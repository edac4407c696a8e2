package zkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// place is a node of a session of ours: a place in the queue for a lock. The first places
// have the lock.
type place struct {
	tree
	leave func() // of the session
	dir   string
	numbered
	czxid  int64
	record record
	// look is the queue as it was right after the place was made; look.err is set if it
	// has to be read.
	look chan outcome
}

// outcome is the result of reading a queue.
type outcome struct {
	queue lineup
	err   error
}

func (p *place) path() string { return p.dir + "/" + p.name }

// create makes the node of a place. It returns an error only if there certainly is none,
// or will be none once the session is over. The end of ctx ends the attempt between calls.
func (p *place) create(ctx context.Context, mark string, spec rule.Spec, weight int64) (err error) {
	prefix := p.dir + "/" + placeName(mark, spec, weight)
	data := p.record.encode()
	lasting := context.WithoutCancel(ctx)
	p.look = make(chan outcome, 1)
	sent, forget := p.Sent(prefix)
	defer forget()
	failed := make(chan struct{})
	defer func() {
		if err != nil {
			close(failed)
		}
	}()
	go p.lookEarly(lasting, hasSeats(spec), sent, failed, p.look)
	for {
		if err := p.Reach(ctx); err != nil {
			return err
		}
		changes := p.Changes()
		path, err := session.Call(lasting, p.Session, func(c *zk.Conn) (string, error) {
			return c.Create(prefix, data, zk.FlagEphemeralSequential, p.acl)
		})
		switch {
		case err == nil:
			return p.named(path, p.Czxid(path))
		case errors.Is(err, zk.ErrNoNode):
			if err := p.makeDir(lasting, p.dir); err != nil {
				return err
			}
			continue
		case !session.Broken(err):
			return explain(err, p.dir)
		}
		// The node may be there. On the next connection of the session the leader refuses
		// what still comes over the last one, so what is not there now never will be.
		select {
		case <-changes:
		case <-p.Over:
			return p.Reason()
		}
		name, found, err := p.findMark(lasting, p.dir, mark)
		if err != nil {
			return err
		}
		if found {
			n, ok, err := p.Get(lasting, p.dir+"/"+name)
			if err != nil || !ok {
				return errors.Join(err, session.ErrOver)
			}
			return p.named(p.dir+"/"+name, n.Czxid)
		}
	}
}

// lookEarly reads the queue without waiting for the answer to the request that makes the
// place. The server answers in order.
func (p *place) lookEarly(ctx context.Context, sized bool, sent, failed <-chan struct{}, look chan<- outcome) {
	select {
	case <-sent:
		q, err := p.children(ctx, p.dir, sized)
		look <- outcome{q, err}
	case <-failed: // nobody asks
	case <-p.Over:
		look <- outcome{err: p.Reason()}
	}
}

// queue returns the queue at some time after the place was made, and the place's index in
// it, or -1 if the place is gone.
func (p *place) queue(ctx context.Context) (q lineup, me int, err error) {
	if p.look != nil {
		select {
		case early := <-p.look:
			p.look = nil
			if me := early.queue.find(p.name); early.err == nil && me >= 0 {
				return early.queue, me, nil
			}
		case <-ctx.Done():
			return lineup{}, -1, ctx.Err()
		}
	}
	q, err = p.children(ctx, p.dir, hasSeats(p.spec))
	return q, q.find(p.name), err
}

// named takes the name and the zxid of the node that was made.
func (p *place) named(path string, czxid int64) error {
	c, ok := parseChild(path[len(p.dir)+1:])
	if !ok {
		return fmt.Errorf("the server named a place %q, without a number", store.Excerpt(path))
	}
	p.numbered, p.czxid = c, czxid
	if czxid <= 0 || czxid>>32 >= maxEpoch {
		_, _ = p.delete(context.Background()) // or it goes with the session
		return fmt.Errorf("the zxid %#x leaves no room for tokens: the ensemble's epoch has to be below %d", czxid, maxEpoch)
	}
	return nil
}

// removeNow removes the node of a place. It returns an error only if the node may remain;
// if it is gone it goes with the session.
func (p *place) removeNow(ctx context.Context) error {
	_, err := p.delete(ctx)
	if err == nil || p.Ended() {
		p.leave()
		return nil
	}
	return err
}

// delete deletes the node. there is false if there was none, and true if there was one or
// may have been one.
func (p *place) delete(ctx context.Context) (there bool, err error) {
	there, err = p.Delete(ctx, p.path())
	return there, explain(err, p.path())
}
