package explore

// state is one moment of the world. It is a plain value: copying it forks the
// world. All times are ticks from the present moment, so what differs only in
// when it happens is one state.
//
// Everything about one attempt, its messages and what nodes keep for its owner
// is in its slot: slots and nodes can be permuted without changing what can
// happen.
type state struct {
	nodes [maxNodes]node
	slots [maxSlots]slot
	// top is the largest token granted so far; used, in a world without time,
	// are all of them.
	top  token
	used uint32
	tops [maxPermits]token // with a Kind; see barrier
	// The faults that are left.
	crashes, losses, jumps, twice, doubts, skips uint8
	// With Lists: whether nodes are being told of the new one, and how long the
	// operator still waits with that.
	switching bool
	wait      uint8
}

// owner is the slot that holds the key of node n, or -1.
func (st *state) owner(n uint8) int {
	for i := range st.slots {
		if st.slots[i].cells[n].key > 0 {
			return i
		}
	}
	return -1
}

// node is what a node keeps besides what is in the slots' cells.
type node struct {
	counter     token
	quarantined uint8 // ticks of quarantine left
	ahead       uint8 // ticks its clock is ahead
	// While it reads its counter back: which nodes it still has to ask, and
	// the largest answer so far.
	unread uint8
	read   token
	list   role // that it was notified of
}

// life is the phase of an attempt and its lease.
type life uint8

const (
	unused  life = iota
	asking       // the attempt is open
	lost         // it is lost, and still waits for answers to clean up after
	holding      // it was won, and the lease may be valid
	over         // nothing will come of it any more, except its messages
)

// slot is one attempt, and the lease it may lead to.
type slot struct {
	life     life
	released bool // over, and was released
	repeated bool // an acquire may have been on its way when it was won
	gaveWay  bool // and is to be followed by another of its rank
	// Nobody waits for it yet: it was begun with a release.
	unclaimed bool
	rank      uint8   // in the queue; the smallest comes first
	machine   machine // the attempt, or the lease
	vote      machine // of a renewal under way; 0: none
	age       uint8   // ticks since the attempt began, while that matters
	voteAt    uint8   // age at which the renewal began
	short     bool    // the renewal asks for one tick
	beside    beside
	renewals  uint8 // begun so far
	token     token // of the grant
	floor     token // without time: the largest token granted before it began
	propose   token
	role      role // of the client, with Lists
	// With a Kind: whether it is a reader's, and the slot agreed on, from 1.
	reads  bool
	agreed uint8
	// hopeless: its renewal began after a majority had broken it; brokeLate: the requests
	// to break it were sent in an earlier tick. See break.go.
	hopeless, brokeLate bool
	cells               [maxNodes]cell
}

// cell is one attempt at one node: what the node keeps for its owner, and the
// messages under way between the two.
type cell struct {
	key, tombstone uint8 // ticks left; 0: none
	freed          bool  // a release of this owner was executed here

	acquire message
	again   bool // another copy of the acquire is under way
	confirm [3]message
	extend  message
	strays  [2]uint8 // extends for whose answers no attempt waits: whole ones, short ones
	heals   uint8    // under way
	beside  stage    // of the request of the slot's other vote
	release bool     // under way, without and with a tombstone
	bury    bool

	queue queue // with Waits
	share share // with a Kind
}

// message is a request and its answer.
type message struct {
	stage stage
	token token // what is to be confirmed; or the answer
}

// stage is the phase of a message.
type stage uint8

const (
	idle   stage = iota // there is none
	asked               // the request is under way, its sender waits
	stray               // the request is under way, and no attempt waits for the answer
	saidNo              // the answer is under way
	saidAbsent
	saidYes
)

// awaited reports whether the sender still waits for the answer.
func (m message) awaited() bool { return m.stage == asked || m.stage >= saidNo }

// sent reports whether the request is under way.
func (m message) sent() bool { return m.stage == asked || m.stage == stray }

// abandon returns the message after its attempt stopped waiting for the answer.
func (m message) abandon() message {
	if m.sent() {
		return message{stage: stray, token: m.token}
	}
	return message{}
}

// answered is the message after its request was executed.
func (m message) answered(how stage, t token) message {
	switch {
	case m.stage != asked:
		return message{}
	case how == saidYes:
		return message{stage: saidYes, token: t}
	}
	return message{stage: how}
}

// ask adds a confirmation to those under way.
func (c *cell) ask(t token, s stage) {
	for i := range c.confirm {
		if c.confirm[i].stage == idle {
			c.confirm[i] = message{stage: s, token: t}
			return
		}
	}
	panic("explore: more confirmations under way than a cell has room for")
}

// acquiring reports whether an acquire can still reach the node.
func (c *cell) acquiring() bool {
	return c.acquire.sent() || c.again || c.share.move.sent() || c.queue.comes != 0 || c.queue.strays != [2]ask{}
}

// confirming reports whether a confirmation or its answer is under way.
func (c *cell) confirming() bool {
	for _, msg := range c.confirm {
		if msg.stage != idle {
			return true
		}
	}
	return false
}

// isGone reports whether nothing is left of an attempt.
func (s *slot) isGone() bool {
	bare := *s
	bare.rank = 0
	return bare == slot{life: over, released: true}
}

// share is what a cell has besides in a world with a Kind.
type share struct {
	slot   uint8   // of the lease at the node, from 1; with key > 0
	said   uint8   // of the grant in the answer to the acquire
	move   message // the acquire for the slot agreed on
	always bool    // the release leaves a tombstone whatever it finds
	broken bool    // of the lease at the node
	breaks breaking
}

// writes reports whether the attempt wants the whole lock.
func (s *slot) writes(m *Model) bool { return m.Kind.Shared && !s.reads }

func (c *cell) abandonConfirms() {
	for i := range c.confirm {
		c.confirm[i] = c.confirm[i].abandon()
	}
}

// stray makes the client stop waiting for the answer to an extend.
func (c *cell) stray(short bool) {
	if c.extend.sent() {
		kind := 0
		if short {
			kind = 1
		}
		c.strays[kind] = min(c.strays[kind]+1, 3)
	}
	c.extend = message{}
}

// heal puts one more message on the wire that gives the node the lease.
func (c *cell) heal() { c.heals = min(c.heals+1, 3) }

// abandonAsks makes the client ignore all further messages of the node to a slot.
func (c *cell) abandonAsks() {
	c.dropAsk()
	c.queue.pushes = [2]push{}
}

// dropAsk makes the client stop waiting for the answer to an ACQUIRE.
func (c *cell) dropAsk() {
	q := &c.queue
	if c.acquire.sent() && !q.behind {
		q.strayed(ask{q.sent + 1, q.stand})
	}
	c.acquire = message{}
	q.answered()
}

// machine is the number of one value of a production machine. The machines are opaque
// to the explorer, which only compares and steps them. It keeps numbers because the
// same few thousand values occur in millions of states.
type machine uint32

// The first value of each kind: one without any events yet.
const fresh machine = 1

// awaits reports whether a release of slot i is under way with the ACQUIRE of another
// slot.
func (st *state) awaits(i uint8) bool {
	for j := range st.slots {
		for n := range st.slots[j].cells {
			if st.slots[j].cells[n].queue.comes == i+1 {
				return true
			}
		}
	}
	return false
}

// before reports whether slot i comes before slot j in every queue.
func (st *state) before(i, j uint8) bool {
	if a, b := st.slots[i].rank, st.slots[j].rank; a != b {
		return a < b
	}
	return i < j
}

// breaking is the phase of a request to break a lease at one node.
type breaking uint8

const (
	notBreaking breaking = iota
	breakAsked
	breakDone
)
