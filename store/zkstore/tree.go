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
// sized is set if there may be places of a semaphore, whose number of permits can change.
func (t tree) children(ctx context.Context, dir string, sized bool) (lineup, error) {
	answers, err := t.Ask(ctx, lineupRequests(dir, sized)...)
	if err != nil {
		return lineup{}, err
	}
	q, err := lineupOf(answers)
	if err != nil || sized || !q.hasSized() {
		return q, err
	}
	node, _, err := t.Get(ctx, dir)
	q.queue, q.version = decodeJSON[dirRecord](node.Data).applyTo(q.queue), node.Version
	return q, err
}

// lineupRequests are what children asks for.
func lineupRequests(dir string, sized bool) []zk.Request {
	if sized {
		return []zk.Request{zk.List(dir), zk.Read(dir)}
	}
	return []zk.Request{zk.List(dir)}
}

// lineupOf returns the places that the answers to lineupRequests show.
func lineupOf(answers []zk.Answer) (lineup, error) {
	names, noted, err := answers[0].Names()
	q := lineup{queue: queueOf(names), version: zk.AnyVersion, noted: noted}
	if err != nil || len(answers) == 1 {
		return q, err
	}
	node, _, err := answers[1].Node()
	q.queue, q.version = decodeJSON[dirRecord](node.Data).applyTo(q.queue), node.Version
	return q, err
}

// earlyOf returns the queue that the answers to lineupRequests show, or nil if it has to be asked
// for again.
func earlyOf(answers []zk.Answer, sized bool) *lineup {
	q, err := lineupOf(answers)
	if err != nil || q.hasSized() && !sized {
		return nil
	}
	return &q
}

// lineup is a queue, and the version of the node that has its places, which says how many
// permits a semaphore has.
type lineup struct {
	queue
	version int32
	// noted is set if that node has data, so that leases of the lock may have been broken.
	noted bool
	// asOf is an instant, if one is known, so that the lineup shows every break before it.
	asOf clock.Instant
}

// makeParents makes the nodes of a path. They remain when they are empty.
func (t tree) makeParents(ctx context.Context, p string) error {
	var missing []string
	for ; p != "/"; p = path.Dir(p) {
		_, ok, err := t.Get(ctx, p)
		if err != nil {
			return explain(err, p)
		}
		if ok {
			break
		}
		missing = append(missing, p)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		err := t.Do(ctx, zk.Create(missing[i], nil, t.acl, zk.Persistent))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return explain(err, missing[i])
		}
	}
	return nil
}

// makeDir makes the node that has the places of a lock. The servers remove it when it is
// empty for a while. The notes about broken leases outlast it, so makeDir says again that
// there are some.
func (t tree) makeDir(ctx context.Context, dir string) error {
	answers, err := t.Ask(ctx, zk.Read(t.notesOf(dir)))
	if err != nil {
		return err
	}
	noted, err := notesFrom(answers[0])
	if err != nil {
		return explain(err, t.notesOf(dir))
	}
	var data []byte
	if noted.there {
		data = dirRecord{Broken: true}.encode()
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
	// line is the one that the place is in, and index where.
	line  lineup
	index int
}

// held reports whether the place holds the lock.
func (f found) held() bool { return f.line.held(f.index, f.record) }

// find looks for the place of an owner, as the leader knows it. ok is false if there is
// none.
func (t tree) find(ctx context.Context, name, owner string) (f found, ok bool, err error) {
	if err := t.Sync(ctx); err != nil {
		return f, false, err
	}
	dir, mark := t.dir(name), ownerMark(owner)
	for {
		q, err := t.children(ctx, dir, false)
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
				return found{c, rec, n.Czxid, n.Version, q, i}, true, nil
			}
			moved = moved || !there
		}
		if !moved { // otherwise the place may have another name by now
			return f, false, nil
		}
	}
}

// replace makes the node of p and deletes another, in one transaction. It returns false if
// the other is gone or has changed since that version. It writes to the other first, so that
// watches on that announce a change, and not its end (see watched.handedOver).
func (t tree) replace(ctx context.Context, p *place, other string, version int32) (bool, error) {
	for {
		a, err := t.Once(ctx, zk.Multi(zk.Set(other, nil, version), zk.Delete(other, zk.AnyVersion), zk.Create(p.path(), p.record.encode(), t.acl, zk.Ephemeral)))
		if err != nil {
			return false, err
		}
		switch _, err := a[0].Each(3); {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
			return false, nil
		case !zk.Broken(err):
			return false, explain(err, p.dir)
		}
		if err := t.Sync(ctx); err != nil {
			return false, err
		}
		if _, ok, err := t.Get(ctx, p.path()); err != nil || ok {
			return ok, err
		}
	}
}
