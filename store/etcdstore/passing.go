package etcdstore

import clientv3 "go.etcd.io/etcd/client/v3"

// mostTold is how many places one transaction tells of their turn. A cluster can allow fewer.
const mostTold = 32

// passage is what a transaction adds that makes room in a lock.
type passage struct {
	ifs  []condition
	then []operation
	// reused is set if the slot that becomes free has a new holder.
	reused bool
}

// pass lets those enter whose turn comes in a read-write lock: a writer or several readers,
// since all that one transaction lets in have the same token. It tells the first that still
// waits, which then watches the whole lock. If there are too many, the last one looks and
// tells the next. freed is the slot that becomes free, or -1.
//
// A place that comes in the meantime cannot have its turn before the first that waits. If
// none waits, the transaction fails if any has come.
func (l layout) pass(v *view, name string, freed int64, most int) (p passage) {
	holders, entered := v.holders(), v
	if holders == len(v.places) {
		p.ifs = append(p.ifs, unchanged(v.prefix, v.revision))
	}
	told := 0
	for i, e := range v.places[:min(len(v.places), holders+1)] {
		if !e.waits() {
			continue
		}
		m := message{Create: e.create, Contended: i+1 < len(v.places)}
		if i == holders { // it has to be told by the last one that leaves
			p.ifs = append(p.ifs, modified(e.key, e.mod))
		} else if _, beside := v.companion(i); !beside && told < most-1 {
			m.Entered, m.Slot = true, entered.freeSlot(i)
			p.let(l, name, e, m.Slot, m.Slot == freed)
			entered = entered.entered(i, m.Slot)
		}
		p.then = append(p.then, l.tell(v.prefix, e, m))
		if told++; told == most {
			break
		}
	}
	return p
}

// let lets the place e enter.
func (p *passage) let(l layout, name string, e entry, number int64, isFreed bool) {
	p.ifs = append(p.ifs, modified(e.key, e.mod)) // so it is there, and has not entered
	if isFreed {
		p.reused = true
	} else {
		p.ifs = append(p.ifs, absent(l.slot(name, number)))
	}
	p.then = append(p.then, touch(e.key), l.take(name, number, successor{Suffix: e.key[len(l.lock(name)):], Create: e.create}, e.lease))
}

// handing is what a transaction adds in which a holder of permits leaves: two transactions
// within it. Each fails by itself if its place has changed.
type handing struct {
	// enter lets in the first place whose turn comes, with the slot of the one that leaves.
	// It is empty if there is none.
	enter passage
	// look tells the first place that still waits, which was created at waiter. If there is
	// none, waiter is 0. at is the index of look in the transaction.
	look   txn
	waiter int64
	at     int
}

// hand hands on the slot freed of a semaphore, whose holder is not in v any more.
func (l layout) hand(v *view, name string, freed int64) (h handing) {
	holders := v.holders()
	for i, e := range v.places[:min(len(v.places), holders+1)] {
		m := message{Create: e.create, Contended: i+1 < len(v.places)}
		switch {
		case !e.waits():
		case i == holders:
			h.waiter, h.look = e.create, l.tellWaiter(v, e, m)
		case !h.enter.reused && freed < e.Limit: // the lock may have fewer permits now
			m.Entered, m.Slot = true, freed
			h.enter.let(l, name, e, freed, true)
			h.enter.then = append(h.enter.then, l.tell(v.prefix, e, m))
		}
	}
	return h
}

// told returns the revision at which the place was created that the transaction has told to
// look, or 0 if it told none.
func (h handing) told(r *clientv3.TxnResponse) int64 {
	if h.waiter != 0 && r.Responses[h.at].GetResponseTxn().Succeeded {
		return h.waiter
	}
	return 0
}

// letIn lets in the first place whose turn it is. It lets in only one, since all that one
// transaction lets in have the same token, and tells the others of their turn. It also tells
// the first place that still waits, unless that is the one created at told. Readers and
// writers are only told to look.
//
// Each operation fails by itself if its place has changed. If only the slot was taken, the
// place is notified of its turn instead. If there are too many places, the last one that is notified
// looks, and tells the next.
func (l layout) letIn(v *view, name string, told int64, most int) (then []operation) {
	holders, entered := v.holders(), false
	for i, e := range v.places[:min(len(v.places), holders+1)] {
		m := message{Create: e.create, Contended: i+1 < len(v.places)}
		switch {
		case !e.waits() || i == holders && e.create == told:
			continue
		case i == holders || e.Shared || entered || len(then) == most-1:
			then = append(then, nested(l.tellWaiter(v, e, m)))
		default:
			entered = true
			look := l.tellWaiter(v, e, m)
			m.Entered, m.Slot = true, v.freeSlot(i)
			var p passage
			p.let(l, name, e, m.Slot, false)
			then = append(then, nested(txn{ifs: p.ifs, then: append(p.then, l.tell(v.prefix, e, m)), els: []operation{nested(look)}}))
		}
		if len(then) == most {
			break
		}
	}
	return then
}

// tellWaiter tells a place that still waits.
func (l layout) tellWaiter(v *view, e entry, m message) txn {
	return txn{ifs: []condition{modified(e.key, e.mod)}, then: []operation{l.tell(v.prefix, e, m)}}
}

// waits reports whether the place is that of a waiter for a lock that several can hold, and
// whose process can be notified.
func (e entry) waits() bool {
	return e.slot == nil && !e.native && e.several() && e.Process != ""
}

// turns tells the places whose turn it is, and the first that still waits.
func (l layout) turns(v *view, most int) (then []operation) {
	holders := v.holders()
	for i, e := range v.places[:min(len(v.places), holders+1)] {
		if !e.waits() {
			continue
		}
		m := message{Create: e.create, Contended: i+1 < len(v.places)}
		if then = append(then, l.tell(v.prefix, e, m)); len(then) == most {
			break
		}
	}
	return then
}

// tell writes a message to the inbox of a place.
func (l layout) tell(prefix string, e entry, m message) operation {
	return put(l.box(e.Process, e.key[len(prefix):]), m.encode(), e.lease)
}
