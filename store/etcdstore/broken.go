package etcdstore

import (
	"encoding/json"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

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
