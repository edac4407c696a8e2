package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

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
	// early is the queue as it was right after the place was made, or nil.
	early *lineup
	// alone is set if no other place was there at the grant, and no lease had been broken: the
	// lock's node then had no data, and that version.
	alone       bool
	nodeVersion int32
	// behind has the places behind this one when the queue was last read, and noted is
	// lineup.noted of that time.
	behind queue
	noted  bool
	// unlisted is set if the lock was handed over without a list since then.
	unlisted bool
	watched
}

func (p *place) path() string { return p.dir + "/" + p.name }

// making makes the node of a place.
type making struct {
	*place
	mark   string
	spec   rule.Spec
	weight int64
	// after is what is known of the lock if the last place before this was the only one, or nil.
	after *vacancy
	// sent are the requests that have left, or nil.
	sent *session.Batch
}

// send asks for the node, and for the queue right after that: the server answers in order.
func (m *making) send(ctx context.Context) (err error) {
	if m.after != nil {
		m.sent, err = m.Send(ctx, session.Multi(session.CheckVersion(m.dir, m.after.version), m.request()))
		return err
	}
	m.sent, err = m.Send(ctx, append([]session.Request{m.request()}, lineupRequests(m.dir, hasSeats(m.spec))...)...)
	return err
}

// request is the request that makes the node.
func (m *making) request() session.Request {
	return session.Create(m.dir+"/"+placeName(m.mark, m.spec, m.weight), m.record.encode(), m.acl)
}

// take takes the answers to what was sent.
func (m *making) take(answers []session.Answer) error {
	if m.after != nil {
		return m.takeAlone(answers[0])
	}
	path, czxid, err := answers[0].Created()
	if err != nil {
		return err
	}
	m.early = earlyOf(answers[1:], hasSeats(m.spec))
	return m.named(path, czxid)
}

// takeAlone takes the answer to a transaction that has left without a request for the queue.
func (m *making) takeAlone(a session.Answer) error {
	parts, err := a.Each(2)
	for _, p := range parts {
		err = cmp.Or(err, p.Err)
	}
	if err != nil {
		return err
	}
	path, czxid, err := parts[1].Created()
	if err == nil {
		err = m.named(path, czxid)
	}
	if err == nil && m.after.precedes(m.seq, czxid) {
		m.early = &lineup{queue: queue{m.numbered}, version: anyVersion, nodeVersion: m.after.version}
	}
	return err
}

// run makes the node. It returns an error only if there certainly is none, or will be none
// once the session is over. The end of ctx ends the attempt between requests.
func (m *making) run(ctx context.Context) error {
	lasting := context.WithoutCancel(ctx)
	for {
		if m.sent == nil {
			if err := m.send(ctx); err != nil {
				return err
			}
		}
		answers, err := m.sent.Wait(lasting)
		if err != nil {
			return err
		}
		m.sent = nil
		err = m.take(answers)
		after := m.after
		m.after = nil
		switch {
		case err == nil:
			return nil
		case after != nil && !session.Broken(err): // the lock's node has changed
			continue
		case errors.Is(err, zk.ErrNoNode):
			if err := m.makeDir(lasting, m.dir); err != nil {
				return err
			}
			continue
		case !session.Broken(err):
			return explain(err, m.dir)
		}
		// The node may be there. On the next connection of the session the leader refuses
		// what still comes over the last one, so what is not there now never will be.
		if found, err := m.adopt(lasting); found || err != nil {
			return err
		}
	}
}

// adopt looks for the node, on another connection than that on which it was asked for.
func (m *making) adopt(ctx context.Context) (found bool, err error) {
	name, found, err := m.findMark(ctx, m.dir, m.mark)
	if err != nil || !found {
		return false, err
	}
	n, ok, err := m.Get(ctx, m.dir+"/"+name)
	if err != nil || !ok {
		return false, errors.Join(err, session.ErrOver)
	}
	return true, m.named(m.dir+"/"+name, n.Czxid)
}

// queue returns the queue at some time after the place was made, and the place's index in
// it, or -1 if the place is gone.
func (p *place) queue(ctx context.Context) (q lineup, me int, err error) {
	me = -1
	if p.early != nil {
		q, p.early = *p.early, nil
		me = q.find(p.name)
	}
	if me < 0 {
		if q, err = p.children(ctx, p.dir, hasSeats(p.spec)); err != nil {
			return q, -1, err
		}
		p.unlisted = false
		me = q.find(p.name)
	}
	p.behind, p.noted = nil, q.noted
	if me >= 0 {
		p.behind = q.queue[me+1:]
	}
	return q, me, nil
}

// errRemoved means that somebody else has removed a place.
var errRemoved = errors.New("another client has removed the place in the queue")

// unbroken returns errBroken if the place must not be granted its lease: the lease was broken
// before its owner was notified of it, or an earlier lease of the same attempt was broken. It
// returns errRemoved if the place is gone.
func (p *place) unbroken(ctx context.Context) error {
	answers, err := p.Ask(ctx, session.Read(p.path()), session.Read(p.notesOf(p.dir)))
	if err != nil {
		return err
	}
	n, ok, err := answers[0].Node()
	if err != nil {
		return err
	}
	if !ok {
		return errRemoved
	}
	noted, err := notesFrom(answers[1])
	if err != nil {
		return err
	}
	rec, _ := decodeRecord(n.Data)
	if rec.Broken || decodeNotes(noted.Data).refuses(rec.Owner, rec.Attempt) {
		return errBroken
	}
	return nil
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
	if _, _, err := p.Delete(ctx, p.dir); err != nil {
		return fmt.Errorf("ZooKeeper has no more numbers for places in %s: they begin again once nobody has a place there and the node is removed: %w", p.dir, err)
	}
	return zk.ErrNoNode
}

// removeNow removes the node of a place. It returns an error only if the node may remain. If
// the session has ended, the node goes with it.
func (p *place) removeNow(ctx context.Context) error {
	_, _, err := p.delete(ctx)
	if err == nil || p.Ended() {
		p.unwatch()
		p.leave()
		return nil
	}
	return err
}

// delete deletes the node. there is false if there was none, and true if there was one or
// may have been one. The zxid is that of the transaction, if that is known.
func (p *place) delete(ctx context.Context) (zxid int64, there bool, err error) {
	zxid, there, err = p.Delete(ctx, p.path())
	return zxid, there, explain(err, p.path())
}
