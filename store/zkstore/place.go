package zkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/store"
)

// place is a node of a session of ours: a place in the queue for a lock. The first place
// has the lock.
type place struct {
	session *session
	leave   func() // of the session
	dir     string
	numbered
	czxid  int64
	record record
}

func (p *place) path() string { return p.dir + "/" + p.name }

// enqueue makes a place at the end of the queue of a lock. If ctx ends first, the place
// is removed in the background.
func (s *Store) enqueue(ctx context.Context, l store.Lease, spare int) (*place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ss, leave, err := s.session(ctx, l.TTL)
	if err != nil {
		return nil, err
	}
	p := &place{session: ss, leave: leave, dir: s.dir(l.Name), record: recordOf(l, spare)}
	done := make(chan error) // not buffered: somebody has the place, the caller or the background
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		err := p.create(ctx, newMark(l.Owner))
		if err != nil {
			leave()
		}
		select {
		case done <- err:
		case <-ctx.Done():
			if err == nil {
				p.remove()
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

// create makes the node of a place. It returns an error only if there certainly is none,
// or will be none once the session is over. The end of ctx ends the attempt between calls.
func (p *place) create(ctx context.Context, mark string) error {
	ss := p.session
	prefix := p.dir + "/" + placeName(mark)
	data := p.record.encode()
	lasting := context.WithoutCancel(ctx)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		changes := ss.changes()
		path, err := call(lasting, ss, func(c *zk.Conn) (string, error) {
			return c.Create(prefix, data, zk.FlagEphemeralSequential, ss.s.acl)
		})
		switch {
		case err == nil:
			return p.named(path, ss.czxid(path))
		case errors.Is(err, zk.ErrNoNode):
			if err := ss.makeDir(lasting, p.dir); err != nil {
				return err
			}
			continue
		case !broken(err):
			return explain(err, p.dir)
		}
		// The node may be there. On the next connection of the session the leader refuses
		// what still comes over the last one, so what is not there now never will be.
		select {
		case <-changes:
		case <-ss.over:
			return ss.reason()
		}
		name, found, err := ss.findMark(lasting, p.dir, mark)
		if err != nil {
			return err
		}
		if found {
			n, ok, err := ss.get(lasting, p.dir+"/"+name)
			if err != nil || !ok {
				return errors.Join(err, errSessionOver)
			}
			return p.named(p.dir+"/"+name, n.czxid)
		}
	}
}

// findMark looks for the node with that mark, as the leader knows it.
func (ss *session) findMark(ctx context.Context, dir, mark string) (name string, found bool, err error) {
	if err := ss.sync(ctx); err != nil {
		return "", false, err
	}
	q, err := ss.children(ctx, dir)
	if err != nil {
		return "", false, err
	}
	if i := q.find(placeName(mark)); i >= 0 {
		return q[i].name, true, nil
	}
	return "", false, nil
}

// named takes the name and the zxid of the node that was made.
func (p *place) named(path string, czxid int64) error {
	c, ok := parseChild(path[len(p.dir)+1:])
	if !ok {
		return fmt.Errorf("the server named a place %q, without a number", store.Excerpt(path))
	}
	p.numbered, p.czxid = c, czxid
	if czxid <= 0 || czxid>>32 >= maxEpoch {
		p.remove()
		return fmt.Errorf("the zxid %#x leaves no room for tokens: the ensemble's epoch has to be below %d", czxid, maxEpoch)
	}
	return nil
}

// makeDir makes the node that has the places of a lock. The servers remove it when it is
// empty for a while.
func (ss *session) makeDir(ctx context.Context, dir string) error {
	_, err := again(ctx, ss, func(c *zk.Conn) (string, error) {
		return c.CreateContainer(dir, nil, zk.FlagContainer, ss.s.acl)
	})
	switch {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode): // somebody has removed the base
		return ss.makeParents(ctx, ss.s.o.Base)
	}
	return explain(err, dir)
}

// remove removes the node of a place in the background.
func (p *place) remove() {
	s := p.session.s
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		defer p.leave()
		if _, err := p.delete(context.Background()); err != nil && !p.session.ended() {
			s.o.Logger.Warn("cannot remove a place in the queue of a lock", "node", p.path(), "err", err)
		}
	}()
}

// removeNow removes the node of a place. It returns an error only if the node may remain;
// if it is gone it goes with the session.
func (p *place) removeNow(ctx context.Context) error {
	_, err := p.delete(ctx)
	if err == nil || p.session.ended() {
		p.leave()
		return nil
	}
	return err
}

// delete deletes the node. there is false if there was none, and true if there was one or
// may have been one.
func (p *place) delete(ctx context.Context) (there bool, err error) {
	return p.session.delete(ctx, p.path())
}

func (ss *session) delete(ctx context.Context, path string) (there bool, err error) {
	unsure := false
	for {
		changes := ss.changes()
		_, err := call(ctx, ss, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return unsure, nil
		case !broken(err):
			return true, explain(err, path)
		}
		unsure = true
		select {
		case <-changes:
		case <-ss.over:
			return true, ss.reason()
		case <-ctx.Done():
			return true, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}
