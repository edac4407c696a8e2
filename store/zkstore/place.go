package zkstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// place is a node of a session of ours: a place in the queue for a lock. The first places
// have the lock.
type place struct {
	tree
	dir string
	numbered
	mark   string // of the node that was asked for, or empty
	czxid  int64  // of the node; 0 until it was made
	record record
	early  *lineup    // the queue as it was listed with the last request, or nil
	after  *lastPlace // that is gone, or nil
	sole   bool       // it was the only place when it was listed, and no lease had been broken
	last   string     // the last of several places behind it when it got the lock, or empty
	watched
}

func (p *place) path() string { return p.dir + "/" + p.name }

// newPlace returns a place for the lease, which is not made yet.
func (t tree) newPlace(l store.Lease) *place {
	return &place{tree: t, dir: t.dir(l.Name), record: recordOf(l), numbered: numbered{spec: specOf(l.Kind), weight: max(l.Weight, 1)}}
}

// create makes the node of a place, in one transaction with the end of the place old unless that is nil,
// and lists the queue right after that: the server answers in order. If old has seen several places
// behind it, create watches the last of these instead: if that is still there, it comes before the new
// place. New places come behind both, so the new place has nothing to do before that one's end. Create
// returns an error only if there certainly is no node, or will be none once the session is over. After the
// end of ctx there may be one: see withdraw.
func (p *place) create(ctx context.Context, old *place) error {
	mark := newMark(p.record.Owner)
	node := zk.Create(p.dir+"/"+placeName(mark, p.spec, p.weight), p.record.encode(), p.acl, zk.EphemeralSequential)
	if old != nil {
		node = zk.Multi(zk.Delete(old.path(), zk.AnyVersion), node)
	}
	for {
		if _, err := p.Connected(ctx); err != nil {
			return err
		}
		p.mark = mark
		after := p.after
		send := []zk.Request{node, zk.List(p.dir)}
		if p.after = nil; after != nil {
			send = []zk.Request{zk.Multi(zk.Check(p.dir, neverSet), node)}
		}
		var last *zk.Watch
		if old != nil && old.last != "" {
			last = zk.WatchNode(p.dir + "/" + old.last)
			send[1] = last.Request()
		}
		answers, err := p.Once(ctx, send...)
		if err != nil {
			last.Stop()
			return err
		}
		made := answers[0]
		if old != nil || after != nil {
			var parts []zk.Answer
			if parts, err = made.Each(2); err == nil {
				made = parts[1]
			}
		}
		if err == nil {
			var path string
			var czxid int64
			if path, czxid, err = made.Created(); err == nil {
				err = p.named(path, czxid)
				switch {
				case last != nil: // nothing is listed
				case after == nil:
					p.early = earlyOf(answers[1])
				case err == nil && after.precedes(p.seq, czxid):
					p.early = &lineup{queue: queue{p.numbered}}
				}
			}
		}
		if last != nil {
			p.watched = watched{before: old.last, set: last, first: answers[1]}
			if err != nil || answers[1].Err != nil { // mostly because it has left
				p.unwatch()
			}
		}
		switch {
		case err == nil:
			return nil
		case after != nil && !zk.Broken(err): // the lock's node has data, or is gone
			continue
		case errors.Is(err, zk.ErrNoNode) && old == nil:
			if err := p.makeDir(ctx, p.dir); err != nil {
				return err
			}
			continue
		case !zk.Broken(err):
			return explain(err, p.dir)
		}
		// The node may be there. On the next connection of the session the leader refuses
		// what still comes over the last one, so what is not there now never will be.
		if found, err := p.adopt(ctx); found || err != nil {
			return err
		}
	}
}

// neverSet is the version of a node whose data are those that it was made with.
const neverSet = 0

// adopt looks for the node, on another connection than that on which it was asked for.
func (p *place) adopt(ctx context.Context) (found bool, err error) {
	if err := p.Sync(ctx); err != nil {
		return false, err
	}
	names, err := p.List(ctx, p.dir)
	i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, protected+p.mark) })
	if err != nil || i < 0 {
		return false, err
	}
	n, ok, err := p.Get(ctx, p.dir+"/"+names[i])
	if err != nil || !ok {
		return false, errors.Join(err, zk.ErrOver)
	}
	return true, p.named(p.dir+"/"+names[i], n.Czxid)
}

// named takes the name and the zxid of the node that was made.
func (p *place) named(path string, czxid int64) error {
	c, ok := parseChild(path[min(len(p.dir)+1, len(path)):])
	if !ok {
		return fmt.Errorf("the server named a place %q, without a number", store.Excerpt(path))
	}
	p.numbered, p.czxid = c, czxid
	if c.seq < 0 || c.seq == math.MaxInt32 {
		return p.countAnew()
	}
	if czxid <= 0 || czxid>>32 >= maxEpoch {
		_, _, _ = p.delete(context.Background()) // or it goes with the session
		return fmt.Errorf("the zxid %#x leaves no room for tokens: the ensemble's epoch has to be below %d", czxid, maxEpoch)
	}
	return nil
}

// countAnew removes a place whose number is the last one, and then the lock's node, so that
// numbers begin again. Servers (ZooKeeper 3.8) give the last number to all further places, which
// then have no order. The result is zk.ErrNoNode once the lock's node is gone, and matches
// zk.ErrNotEmpty while others have places there.
func (p *place) countAnew() error {
	ctx := context.Background()
	if _, _, err := p.delete(ctx); err != nil { // or it goes with the session
		return err
	}
	if _, _, err := p.Delete(ctx, p.dir, zk.AnyVersion); err != nil {
		return fmt.Errorf("ZooKeeper has no more numbers for places in %s: they begin again once nobody has a place there and the node is removed: %w", p.dir, err)
	}
	return zk.ErrNoNode
}

// queue returns the queue at some time after the place was made, and the place's index in
// it, or -1 if the place is gone.
func (p *place) queue(ctx context.Context) (q lineup, me int, err error) {
	if early := p.early; early != nil {
		p.early = nil
		if me = early.find(p.name); me >= 0 {
			return *early, me, nil
		}
	}
	asOf := p.Proven()
	if q, err = p.children(ctx, p.dir); err != nil {
		return q, -1, err
	}
	q.asOf = asOf
	return q, q.find(p.name), nil
}

// errRemoved means that somebody else has removed a place.
var errRemoved = errors.New("another client has removed the place in the queue")

// unbroken returns errBroken if the place must not be granted its lease: the lease was broken
// before its owner was notified of it, or an earlier lease of the same attempt was broken. It
// returns errRemoved if the place is gone.
func (p *place) unbroken(ctx context.Context) error {
	n, ok, err := p.Get(ctx, p.path())
	if err != nil {
		return err
	}
	if !ok {
		return errRemoved
	}
	noted, _, err := p.node(ctx, p.notesOf(p.dir))
	if err != nil {
		return err
	}
	rec, _ := decodeRecord(n.Data)
	if rec.Broken || decodeJSON[notes](noted.Data).refuses(rec.Owner, rec.Attempt) {
		return errBroken
	}
	return nil
}

// removeNow removes the node of a place. It returns an error only if the node may remain. If
// the session has ended, the node goes with it.
func (p *place) removeNow(ctx context.Context) error {
	if _, _, err := p.delete(ctx); err != nil && !p.Ended() {
		return err
	}
	p.unwatch()
	return nil
}

// delete deletes the node, as zk.Session.Delete does.
func (p *place) delete(ctx context.Context) (there bool, zxid int64, err error) {
	there, zxid, err = p.Delete(ctx, p.path(), zk.AnyVersion)
	return there, zxid, explain(err, p.path())
}

// reserved is a place that was made with a release and that no Wait has claimed.
type reserved struct {
	*place
	start clock.Instant // before it was asked for
}

// enqueue makes a place at the end of the queue of a lock. If ctx ends first, the place
// is removed in the background.
func (s *engine) enqueue(ctx context.Context, l store.Lease) (*place, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := s.tree(ctx, l.TTL)
	if err != nil {
		return nil, err
	}
	p := t.newPlace(l)
	if p.spec == rule.Mutex {
		p.after = s.free.take(l.Name, t.Zxid())
	}
	if err := p.create(ctx, nil); err != nil {
		s.withdraw(ctx, p, func() {})
		return nil, err
	}
	return p, nil
}

// withdraw gives up a place that could not be made. If that was because ctx has ended, and the node
// is there all the same, it calls made and removes the node, in the background.
func (s *engine) withdraw(ctx context.Context, p *place, made func()) {
	if ctx.Err() == nil || p.mark == "" {
		return
	}
	s.gate.Go(func() {
		if found, _ := p.adopt(context.Background()); found {
			made()
			s.remove(p)
		}
	})
}

// remove removes the node of a place in the background.
func (s *engine) remove(p *place) {
	s.gate.Go(func() {
		p.unwatch()
		if _, _, err := p.delete(context.Background()); err != nil && !p.Ended() {
			s.o.Logger.Warn("cannot remove a place in the queue of a lock", "node", p.path(), "err", err)
		}
	})
}

// expired ends a lease that nobody has renewed, or a place that nobody has claimed. Timers
// call it.
func (s *engine) expired(p *place) {
	if s.gate.Enter() == nil {
		defer s.gate.Leave()
		s.remove(p)
	}
}

// grant makes a lease of a place that has the lock. Its validity counts from at.
func (s *engine) grant(ctx context.Context, p *place, l store.Lease, at clock.Instant) (store.Grant, error) {
	if _, err := p.Prove(ctx, at); err != nil {
		return store.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Grant{}, err
	}
	return s.keep(l, p).grant(), nil
}

// keep makes a lease of a place, which ends after its TTL unless it is renewed.
func (s *engine) keep(l store.Lease, p *place) *lease {
	h := newLease(l.Name, p)
	s.leases.add(h, l.TTL, s.expired)
	return h
}
