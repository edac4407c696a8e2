package zkstore

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// tree is what a session sees of the nodes of locks.
type tree struct {
	*zk.Session
	base string
	acl  []zk.ACL
	// most is the longest timeout of a session.
	most time.Duration
}

// dir returns the node that has the places of a lock.
func (t tree) dir(name string) string { return t.base + "/" + escape(name) }

// notesDir returns the node below which the notes of all locks are, and notesOf the node with
// the notes of the lock whose places are in dir.
func (t tree) notesDir() string          { return t.base + "/" + notesNode }
func (t tree) notesOf(dir string) string { return t.notesDir() + "/" + path.Base(dir) }

// children returns the places below a node, in order. A node that is not there has none.
func (t tree) children(ctx context.Context, dir string) (lineup, error) {
	answers, err := t.Ask(ctx, zk.List(dir))
	if err != nil {
		return lineup{}, err
	}
	return lineupOf(answers[0])
}

// lineupOf returns the places that the answer to zk.List shows.
func lineupOf(a zk.Answer) (lineup, error) {
	names, noted, err := a.Names()
	return lineup{queue: queueOf(names), noted: noted}, err
}

// earlyOf returns the places that the answer to zk.List shows, or nil if they have to be asked for
// again.
func earlyOf(a zk.Answer) *lineup {
	if q, err := lineupOf(a); err == nil {
		return &q
	}
	return nil
}

// lineup is a queue.
type lineup struct {
	queue
	// noted is set if the node that has the places has data, so that leases of the lock may have
	// been broken.
	noted bool
	// asOf is an instant, if one is known, so that the lineup shows every break before it.
	asOf clock.Instant
}

// node returns a node; ok is false if there is none.
func (t tree) node(ctx context.Context, path string) (n zk.Node, ok bool, err error) {
	n, ok, err = t.Get(ctx, path)
	return n, ok, explain(err, path)
}

// makeParents makes the nodes of a path. They remain when they are empty.
func (t tree) makeParents(ctx context.Context, p string) error {
	if _, ok, err := t.node(ctx, p); ok || err != nil {
		return err
	}
	if err := t.makeParents(ctx, path.Dir(p)); err != nil {
		return err
	}
	err := t.Do(ctx, zk.Create(p, nil, t.acl, zk.Persistent))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return explain(err, p)
}

// makeDir makes the node that has the places of a lock. The servers remove it when it is
// empty for a while. The notes about broken leases outlast it, so makeDir says again that
// there are some.
func (t tree) makeDir(ctx context.Context, dir string) error {
	_, noted, err := t.node(ctx, t.notesOf(dir))
	if err != nil {
		return err
	}
	var data []byte
	if noted {
		data = notesMark
	}
	switch err = t.Do(ctx, zk.Create(dir, data, t.acl, zk.Container)); {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode): // somebody has removed the base
		return t.makeParents(ctx, t.base)
	}
	return explain(err, dir)
}

// found is a place of an owner, in whatever session.
type found struct {
	numbered
	record  record
	czxid   int64
	version int32
	// line is the queue that the place is in, and index where.
	line  queue
	index int
}

// held reports whether the place holds the lock.
func (f found) held() bool { return f.index < f.line.holders() }

// find looks for the place of an owner, as the leader knows it. ok is false if there is
// none.
func (t tree) find(ctx context.Context, name, owner string) (f found, ok bool, err error) {
	if err := t.Sync(ctx); err != nil {
		return f, false, err
	}
	dir, mark := t.dir(name), ownerMark(owner)
	for {
		q, err := t.children(ctx, dir)
		if err != nil {
			return f, false, err
		}
		moved := false
		for i, c := range q.queue {
			if !c.isOf(mark) {
				continue
			}
			n, there, err := t.Get(ctx, dir+"/"+c.name)
			if err != nil {
				return f, false, err
			}
			if rec, ours := decodeRecord(n.Data); there && ours && rec.Owner == owner {
				return found{c, rec, n.Czxid, n.Version, q.queue, i}, true, nil
			}
			moved = moved || !there
		}
		if !moved { // otherwise the place may have another name by now
			return f, false, nil
		}
	}
}

// replace makes the node of p, notes its zxid, and deletes another, in one transaction. It returns false if
// the other is gone or has changed since that version. It writes to the other first, so that
// watches on that announce a change, and not its end (see watched.handedOver).
func (t tree) replace(ctx context.Context, p *place, other string, version int32) (bool, error) {
	for {
		a, err := t.Once(ctx, zk.Multi(zk.Set(other, nil, version), zk.Delete(other, zk.AnyVersion), zk.Create(p.path(), p.record.encode(), t.acl, zk.Ephemeral)))
		if err != nil {
			return false, err
		}
		switch parts, err := a[0].Each(3); {
		case err == nil:
			_, p.czxid, err = parts[2].Created()
			return true, err
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
			return false, nil
		case !zk.Broken(err):
			return false, explain(err, p.dir)
		}
		if err := t.Sync(ctx); err != nil {
			return false, err
		}
		if n, ok, err := t.Get(ctx, p.path()); err != nil || ok {
			p.czxid = n.Czxid
			return ok, err
		}
	}
}
