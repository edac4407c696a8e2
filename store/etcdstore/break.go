package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// NotifyBroken implements driver.Engine.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) { return s.broken.Add(f) }

// BreakLease implements driver.Engine, in one transaction, which also tells the process of
// the holder. With Now, the same transaction hands the lock on. If the holder's process was
// not told, the lease can last for one TTL more than BreakLease returned: its next renewal is
// refused, but etcd has extended the lease by then. Locks of native clients are refused with
// store.ErrUnsupported.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	const op = "break the lease of"
	b := breaking{s: s, r: r}
	left, err = b.run(ctx)
	switch {
	case err == store.ErrNotHeld:
		return 0, fmt.Errorf("%s %q in etcd at %s: %w", op, r.Name, s.members, err)
	case errors.Is(err, store.ErrUnsupported):
		return 0, err
	case err != nil:
		return 0, s.refused(ctx, op, r.Name, true, err)
	}
	return left, nil
}

// breaking breaks one lease.
type breaking struct {
	s    *engine
	r    store.BreakRequest
	keep clientv3.LeaseID // the lease of the note; 0: there is none yet
}

// run returns how long the lease can last.
func (b *breaking) run(ctx context.Context) (left time.Duration, err error) {
	for {
		v, last, err := b.s.readWithNote(ctx, b.r.Name)
		if err != nil {
			return 0, err
		}
		step, at := v.toBreak(b.r, last, b.s.floor)
		switch step {
		case breakOver:
			return 0, nil
		case breakForeign:
			return 0, store.UnbreakableError(b.r.Name)
		case breakNothing:
			return 0, store.ErrNotHeld
		}
		done, err := b.make(ctx, step, v, at)
		switch {
		case isGone(err):
			b.keep = clientv3.NoLease // of the place or of the note
			continue
		case err != nil:
			return 0, err
		case !done:
			continue // the place has changed
		case step == breakEnd:
			return 0, nil
		}
		return b.s.left(ctx, v.places[at])
	}
}

// make makes a step for the place at index at of v. It returns false if the place is not as in v any more.
func (b *breaking) make(ctx context.Context, step breakStep, v *view, at int) (done bool, err error) {
	e, l := v.places[at], b.s.layout
	if !e.Broken && b.keep == clientv3.NoLease { // the lease of the note, which it ends after store.KeepBroken
		keep, err := b.s.pool.grant(ctx, int64(store.KeepBroken/time.Second))
		if err != nil {
			return false, err
		}
		b.keep = keep.id
	}
	if step == breakEnd { // as its owner would
		ends := ending{s: b.s, of: store.Lease{Name: b.r.Name, Owner: e.Owner}, key: e.key, create: e.create, slot: e.slotKey(), mod: e.mod, v: v}
		if !e.Broken { // otherwise they are there
			ends.also = traces(l, v, e, b.r, b.keep)
		}
		if err = ends.run(ctx); err == errMoved || errors.Is(err, store.ErrNotHeld) {
			return false, nil
		}
		return err == nil, err
	}
	// The holder is told again if the lease was broken before, since a message can be lost.
	t := txn{ifs: []condition{created(e.key, e.create), modified(e.key, e.mod)}, then: remind(l, v, e)}
	if step == breakMark {
		t = mark(l, v, e, b.r, b.s.floor, b.keep)
	}
	r, _, err := b.s.commit(ctx, t)
	return err == nil && r.Succeeded, err
}

// A lease that is broken keeps its place, whose value says so. So it is not renewed, and
// what the place is attached to ends by itself. Two more keys are written with that: a note
// for people, and a key that refuses requests of the owner that are still on their way.
// That key is attached to the lease of the place: requests that come later than its end
// find no lease to attach a place to. The etcd lease is not revoked, since the holder's
// process may use it for another lock by then.

// note is about the lease of a lock that was broken last.
type note struct {
	Owner string      `json:"owner"`
	Token fence.Token `json:"token"`
	// Note is that of store.BreakRequest.
	Note string `json:"note"`
}

// noteOf returns the note that was read, and nil if there is none.
func noteOf(kvs []*mvccpb.KeyValue) *note {
	n := &note{}
	if len(kvs) == 0 || json.Unmarshal(kvs[0].Value, n) != nil {
		return nil
	}
	return n
}

// is reports whether n is about the lease of r. n may be nil.
func (n *note) is(r store.BreakRequest) bool {
	return n != nil && n.Owner == r.Owner && n.Token == r.Token
}

// decode returns what is shown of n, which may be nil.
func (n *note) decode() *store.Broken {
	if n == nil {
		return nil
	}
	return store.DecodeBroken(n.Owner, n.Token, n.Note)
}

// breakStep is what a request to break a lease has to do.
type breakStep int

const (
	breakNothing breakStep = iota // the lease is not there
	breakOver                     // the lease was broken, and is over
	breakForeign                  // the lock belongs to another kind of client
	breakMark                     // the lease is to be broken
	breakTell                     // the lease was broken, and is not over
	breakEnd                      // the lease is to be ended now
)

// toBreak says what r has to do in v, and with which place. last may be nil.
func (v *view) toBreak(r store.BreakRequest, last *note, floor fence.Token) (step breakStep, at int) {
	for i, e := range v.places[:v.holders()] {
		switch {
		case e.native || e.Owner != r.Owner || e.token(floor) != r.Token:
		case e.several() && e.slot == nil: // it has not entered yet
		case r.Now:
			return breakEnd, i
		case e.Broken:
			return breakTell, i
		default:
			return breakMark, i
		}
	}
	switch {
	case last.is(r):
		return breakOver, -1
	case len(v.places) > 0 && v.places[0].native:
		return breakForeign, -1
	}
	return breakNothing, -1
}

// mark is the transaction that breaks the lease of e, which is in v. A second try fails,
// since the first one has modified the place.
func mark(l layout, v *view, e entry, r store.BreakRequest, floor fence.Token, keep clientv3.LeaseID) txn {
	e.Token, e.Broken = e.token(floor), true
	return txn{
		ifs:  []condition{created(e.key, e.create), modified(e.key, e.mod)},
		then: append([]operation{replace(e.key, encode(e.record))}, traces(l, v, e, r, keep)...),
	}
}

// traces is what a transaction adds that breaks the lease of e, or ends it. The note is
// attached to the lease keep.
func traces(l layout, v *view, e entry, r store.BreakRequest, keep clientv3.LeaseID) []operation {
	n := note{Owner: r.Owner, Token: r.Token, Note: r.Note()}
	return append([]operation{
		put(l.note(r.Name), encode(n), keep),
		put(l.tombstone(r.Name, e.Owner, e.Made), "", e.lease),
	}, remind(l, v, e)...)
}

// remind tells the process of e, whose lease was broken, if it wants to be notified.
func remind(l layout, v *view, e entry) []operation {
	if e.Process == "" {
		return nil
	}
	return []operation{l.notify(v.prefix, e, message{Create: e.create, Broken: e.Owner})}
}
