package explore

// queue is what waiting adds to a cell: a place in the node's queue, and more messages
// under way. A stamp is the age of the attempt when an ACQUIRE left.
type queue struct {
	place uint8 // ticks left; 0: none
	stamp uint8 // of the place

	asks   uint8   // ACQUIREs sent so far
	sent   uint8   // stamp of the one that is waited for
	stand  bool    // which does not take a free lock
	holder uint8   // its answer: the slot, plus one, that has the lock,
	lasts  uint8   // for so many ticks,
	senior bool    // and comes before us
	lost   bool    // it was lost, and is not answered
	strays [2]ask  // others, for whose answers no attempt waits
	pushes [2]push // that the lock is ours

	comes   uint8 // the first ACQUIRE is under way with the release of that slot, plus one,
	renewed bool  // which leaves a tombstone in any case
	behind  bool  // its answer was not heard yet
	none    bool  // the answer was that there is no holder to wait behind

	always          bool // the release leaves a tombstone in any case
	gives, toSenior bool // it hands the lock to nobody, or only to an attempt before us
}

// ask is an ACQUIRE under way for whose answer no attempt waits.
type ask struct {
	stamp uint8 // plus one; 0: there is none
	stand bool
}

// push is a node's notification that it granted the lock, since the request of that
// stamp.
type push struct {
	token token
	stamp uint8 // plus one; 0: there is none
}

// Widths of a queue's fields in a state.
const (
	stampBits = 3
	askBits   = 2
	pushToken = 6
)

func (q *queue) pack() uint64 {
	if *q == (queue{}) {
		return 0
	}
	var b fields
	b.put(uint64(q.place), 3)
	b.put(uint64(q.stamp), stampBits)
	b.put(uint64(q.asks), askBits)
	b.put(uint64(q.sent), stampBits)
	b.put(uint64(q.holder), 3)
	b.put(uint64(q.lasts), 3)
	for _, a := range q.strays {
		b.put(uint64(a.stamp)<<1|bit(a.stand), stampBits+2)
	}
	for _, p := range q.pushes {
		b.put(uint64(p.token), pushToken)
		b.put(uint64(p.stamp), stampBits+1)
	}
	b.put(bit(q.stand)|bit(q.always)<<1|bit(q.gives)<<2|bit(q.toSenior)<<3|bit(q.senior)<<4|bit(q.lost)<<5, 6)
	b.put(uint64(q.comes), 3)
	b.put(bit(q.renewed)|bit(q.behind)<<1|bit(q.none)<<2, 3)
	return b.word
}

func unpackQueue(word uint64) (q queue) {
	if word == 0 {
		return q
	}
	b := fields{word: word}
	q.place, q.stamp = uint8(b.get(3)), uint8(b.get(stampBits))
	q.asks, q.sent, q.holder, q.lasts = uint8(b.get(askBits)), uint8(b.get(stampBits)), uint8(b.get(3)), uint8(b.get(3))
	for i := range q.strays {
		a := b.get(stampBits + 2)
		q.strays[i] = ask{uint8(a >> 1), a&1 == 1}
	}
	for i := range q.pushes {
		q.pushes[i] = push{token(b.get(pushToken)), uint8(b.get(stampBits + 1))}
	}
	flags := b.get(6)
	q.stand, q.always, q.gives, q.toSenior = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	q.senior, q.lost = flags&16 != 0, flags&32 != 0
	q.comes, flags = uint8(b.get(3)), b.get(3)
	q.renewed, q.behind, q.none = flags&1 != 0, flags&2 != 0, flags&4 != 0
	return q
}

// strayed puts one more ACQUIRE on the wire for whose answer no attempt waits. If there is
// no room, the oldest never arrives.
func (q *queue) strayed(a ask) {
	switch {
	case q.strays[0].stamp == 0:
		q.strays[0] = a
	case q.strays[1].stamp == 0:
		q.strays[1] = a
	default:
		q.strays[0], q.strays[1] = q.strays[1], a
	}
}

// pushed puts one more push on the wire. If there is no room, the oldest never arrives.
func (q *queue) pushed(p push) {
	if q.pushes[0].stamp != 0 {
		q.pushes[0] = q.pushes[1]
	}
	q.pushes[1] = p
	q.sort()
}

// sort puts messages without an order into a canonical one.
func (q *queue) sort() {
	if a, b := q.strays[0], q.strays[1]; a.stamp > b.stamp || a.stamp == b.stamp && a.stand && !b.stand {
		q.strays[0], q.strays[1] = b, a
	}
	if a, b := q.pushes[0], q.pushes[1]; a.token > b.token || a.token == b.token && a.stamp > b.stamp {
		q.pushes[0], q.pushes[1] = b, a
	}
}

// answered clears the ACQUIRE whose answer the client waits for.
func (q *queue) answered() {
	q.sent, q.stand, q.holder, q.lasts, q.senior, q.lost = 0, false, 0, 0, false, false
}

// unsent handles an ACQUIRE that never left; the release that it came with never left
// either.
func (q *queue) unsent() {
	if q.behind {
		q.comes, q.renewed = 0, false
	}
}
