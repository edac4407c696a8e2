package etcdstore

// mostTold is how many places one transaction tells of their turn.
const mostTold = 32

// handoff is what a transaction adds that makes room in a lock.
type handoff struct {
	ifs  []condition
	then []operation
	// reused is set if the slot that becomes free has a new holder.
	reused bool
}

// admitNext lets in places whose turn it is in v: the next owner of a mutex, a writer, several readers, or
// one permit, since all that one transaction lets in have the same token. It tells the others whose turn it
// is, and the first that still waits, which then watches the whole lock. If there are too many, the last
// one looks and tells the next. freed is the slot that becomes free, or -1.
//
// A place that comes in the meantime cannot have its turn before the first that waits. If
// none waits, the transaction fails if any has come. Only one place holds a mutex, so there
// nobody but the next owner has to be told.
func (l layout) admitNext(v *view, name string, freed int64) (h handoff) {
	holders, entered := v.holders(), v
	if holders == len(v.places) && v.several() {
		h.ifs = append(h.ifs, unchanged(v.prefix, v.revision))
	}
	in, told := 0, 0
	for i, e := range v.turns() {
		switch _, beside := v.companion(i); {
		case i == holders: // it has to be told by the last one that leaves
			h.ifs = append(h.ifs, modified(e.key, e.mod))
		case !beside && told < mostTold-1 && (in == 0 || e.sharesToken()):
			in++
			h.ifs = append(h.ifs, modified(e.key, e.mod)) // so it is there, and has not entered
			h.then = append(h.then, touch(e.key))         // its revision is the token
			if !e.several() {
				break
			}
			is := slot{number: entered.freeSlot(i)}
			is.key = l.slot(name, is.number)
			entered = entered.entered(i, is)
			if is.number == freed {
				h.reused = true
			} else {
				h.ifs = append(h.ifs, absent(is.key))
			}
			h.then = append(h.then, takeSlot(is.key, e.id(v.prefix), e.lease))
		}
		h.then = append(h.then, l.notify(v.prefix, e, message{Create: e.create}))
		if told++; told == mostTold {
			break
		}
	}
	return h
}

// turns yields the places that can be told of their turn, and the first that still waits, with
// their indexes.
func (v *view) turns() func(yield func(int, entry) bool) {
	holders := v.holders()
	return func(yield func(int, entry) bool) {
		for i, e := range v.places[:min(len(v.places), holders+1)] {
			waits := e.slot == nil && !e.native && e.Process != ""
			if waits && (i < holders || e.several()) && !yield(i, e) {
				return
			}
		}
	}
}

// notifyTurns tells the places whose turn it is, and the first that still waits.
func (l layout) notifyTurns(v *view) (then []operation) {
	for _, e := range v.turns() {
		if then = append(then, l.notify(v.prefix, e, message{Create: e.create})); len(then) == mostTold {
			break
		}
	}
	return then
}

// notify writes a message to the inbox of a place.
func (l layout) notify(prefix string, e entry, m message) operation {
	return put(l.inbox(e.Process)+e.key[len(prefix):], encode(m), e.lease)
}

// id returns which place e is among those with a prefix.
func (e entry) id(prefix string) placeID { return placeID{e.key[len(prefix):], e.create} }
