package sim

import (
	"bytes"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
)

// node is one address, and the server that answers there: with a clock of its own,
// that can be slow, down, forgetful, or another than before. It does one command at a
// time.
type node struct {
	w      *world
	index  int
	server *simredis.Server
	starts int // of servers, and promotions: their run and replication ids

	// Its clock: what it showed when the run began, and how many parts in a
	// million it is fast. steps are what it was set ahead or back since.
	epoch clock.Instant
	ppm   int64
	steps time.Duration
	backs int

	durable bool // it appends every write to a file before it answers
	up      bool
	life    int             // counts its starts
	slow    time.Duration   // that each command takes
	ails    map[string]bool // error codes that it answers with
	queue   []task          // commands that wait, in order
	busy    bool            // with the first of them
	spoken  []*stream       // to which it has something to say

	// opens is when a quarantine that it owes ends, by its own clock: the server
	// has lost data, or may be another.
	opens clock.Instant
	// doubted is until when clients may not count it, at most: it may be in
	// quarantine for longer than it need be, or its clock has jumped.
	doubted time.Duration
	// unseen: the server may have lost data, and no client has come since. The first one
	// finds it out and begins the quarantine, since no server knows how long it ran before.
	unseen bool
	// setRight is when its clock, which was behind, was last set right.
	setRight time.Duration
	// discounted is until when every client that was connected when its clock jumped
	// ahead does not count what it grants, at least.
	discounted time.Duration
	holders    [][]int // of each lock, as the judge has last seen
	offered    []offer // of each lock
	// barred is until when each owner that was released here may not have a lock, by the node's
	// clock, as far as the node can know.
	barred map[int]clock.Instant
}

// offer is a free lock of which a node notified one barging waiter. No other waiter is
// notified. If that waiter cannot be reached, it keeps the lock from others for as long as a
// waiter that was handed the lock.
type offer struct {
	owner int
	until time.Duration
}

// task is a command of a connection; of a connection that ends it is nil.
type task struct {
	s     *stream
	words []string
	g     *segment
	at    int // the command's place in the segment as it was written
}

// midnight of the first of January 2026, when runs begin. Bubbles begin in 2000, when a
// time in milliseconds had a digit less than the scripts expect.
const midnight = clock.Instant(1767225600 * time.Second)

func newNode(w *world, i int) *node {
	n := &node{w: w, index: i, up: true, holders: make([][]int, w.script.Locks), offered: make([]offer, w.script.Locks), barred: map[int]clock.Instant{}, ails: map[string]bool{}}
	n.epoch = midnight.Add(time.Duration(w.rng.Int64N(int64(2*clockError))) - clockError)
	n.ppm = w.rng.Int64N(2*clockRate+1) - clockRate
	n.durable = true
	for _, f := range w.script.Faults {
		if (f.Node == 0 || f.Node == i+1) && (f.Size > 0 && (f.Kind == Crash || f.Kind == Replace) || f.Kind == Boot) {
			n.durable = false
		}
	}
	n.start(nil)
	return n
}

// start begins a new run of the server, with the data that it finds.
func (n *node) start(d simredis.Data) {
	n.starts++
	n.server = simredis.New(n.id(), n.wall)
	n.server.Edit = n.w.switches.Edit
	n.server.SetDurable(n.durable)
	if d != nil {
		n.server.Load(d)
	}
	n.ailing()
}

// id identifies the present run of the server, or its history since the last promotion. Clients
// and scripts compare the first characters only.
func (n *node) id() string { return fmt.Sprintf("%d%06d%033d", n.index+1, n.starts, 0) }

// wall is the server's time of day.
func (n *node) wall() time.Time { return time.Unix(0, int64(n.clock())) }

// clock is the node's own time. Tokens count its microseconds.
func (n *node) clock() clock.Instant {
	t := n.w.now()
	return n.epoch.Add(t + t/1_000_000*time.Duration(n.ppm) + n.steps)
}

// trueLength is how long d of the node's clock lasts.
func (n *node) trueLength(d time.Duration) time.Duration {
	return time.Duration(float64(d) * 1e6 / float64(1_000_000+n.ppm))
}

// quarantineLeft is how long the quarantine that the node still owes lasts.
func (n *node) quarantineLeft() time.Duration { return n.trueLength(max(0, n.opens.Sub(n.clock()))) }

// mayHaveForgotten begins a quarantine, if there is one: a server that is alone is only
// put into one for locks that require it.
func (n *node) mayHaveForgotten() {
	clear(n.barred)
	n.opens = max(n.opens, n.clock().Add(n.w.script.quarantine()))
	n.unseen = true
	n.w.trace.crashed(n)
}

// visited notes that a client asks about the server's mark, or needs it for a grant. If
// there is no mark, the quarantine begins when that client writes one.
func (n *node) visited() {
	if _, _, marked := n.server.Value(redisMark); n.unseen && marked {
		n.unseen = false
		n.doubt(2*n.w.script.quarantine() + 2*time.Second)
	}
}

// mark is what clients wrote of the node; zero if they wrote nothing.
func (n *node) mark() nodemark.Mark {
	text, _, _ := n.server.Value(redisMark)
	m, err := nodemark.Parse(text)
	if err != nil {
		return nodemark.Mark{}
	}
	return m
}

// needless reports whether a command began or lengthened a quarantine that the node does not owe:
// the clock of its client is behind, or it was under way for so long that its client seems
// to know another server. Each happens once to a client.
func needless(before, after nodemark.Mark) bool {
	return after.Lengthened && !before.Lengthened || after.Why == "returned" && after.Opens != before.Opens
}

// redisMark is the key of the mark that clients write on a server.
const redisMark = "leasehold:node"

// doubt excuses clients for not counting the node for some time.
func (n *node) doubt(d time.Duration) { n.doubted = max(n.doubted, n.w.now()+d) }

// serve does the commands of a segment, after those that came before.
func (n *node) serve(s *stream, g segment) {
	g.answers = make([][]byte, len(g.commands))
	for _, i := range g.order {
		n.queue = append(n.queue, task{s: s, words: g.commands[i], g: &g, at: i})
		s.served = append(s.served, g.commands[i])
	}
	s.served = s.served[max(0, len(s.served)-4):]
	if g.fin {
		n.queue = append(n.queue, task{s: s})
	}
	if !n.busy {
		n.work()
	}
}

// work executes the commands that wait, each at its time.
func (n *node) work() {
	for n.busy = false; len(n.queue) > 0; n.queue = n.queue[1:] {
		if n.slow > 0 && n.queue[0].words != nil {
			n.busy = true
			life := n.life
			n.w.after(n.slow, outside, func() {
				if n.life == life {
					n.finish()
					n.queue = n.queue[1:]
					n.work()
				}
			})
			return
		}
		n.finish()
	}
}

// finish executes the first command that waits. Its answer goes out with the answers to the
// rest of its segment.
func (n *node) finish() {
	k := n.queue[0]
	if k.words == nil {
		k.s.session.Close()
		k.s.l.open--
		return
	}
	k.g.answers[k.at] = n.apply(k.s.session, k.words, delivery{left: k.g.left, operator: k.s.l.c.operates()})
	if k.g.done++; k.g.done < len(k.g.commands) {
		return
	}
	reply(k.g.parts, k.g.answers, k.s.says)
	spoken := n.spoken
	n.spoken = nil
	for _, s := range spoken {
		s.flush()
	}
}

// replays does a command once more, on a connection that nobody has.
func (n *node) replays(words []string) {
	session := n.server.Connect(func([]byte) {})
	defer session.Close()
	n.apply(session, words, delivery{replayed: true})
	for _, s := range n.spoken {
		s.flush()
	}
	n.spoken = nil
}

// delivery is how a command came to a node: when it left, whether an operator sent it, and whether
// somebody on the way sent it once more.
type delivery struct {
	left               time.Duration
	operator, replayed bool
}

// apply is the atomic step of one command.
func (n *node) apply(session *simredis.Conn, words []string, d delivery) []byte {
	o := n.w.names.read(n.server, words)
	o.operator = d.operator && !n.w.switches.Disguised
	before := n.mark()
	isList := n.w.names.isList(n.server, words)
	said := onlyReply(session.Do(words), isList)
	if o.ends() && n.w.switches.Blunt {
		d := n.server.Data()
		delete(d, lockName(o.lock))
		n.server.Load(d)
	}
	result := said
	if isList {
		_, result = afterClock(said)
	}
	if needless(before, n.mark()) {
		n.doubt(n.w.script.quarantine() + 2*time.Second)
	}
	granted := result[0] == '$' || o.name == "acquire" && bytes.Equal(result, done)
	if (o.name == "arrive" || o.acquires()) && (result[0] == '*' || granted) {
		n.visited()
	}
	n.w.hist.applies(n.index, o, result, d.replayed)
	n.w.judge.applied(n, o, result, d.replayed)
	n.w.trace.applied(n, o, result, d.left)
	return said
}

// pushes takes in the push messages of the node on one of its connections.
func (n *node) pushes(b []byte) {
	_, after, ok := bytes.Cut(b, []byte("free "))
	if !ok {
		return
	}
	owner, _, _ := bytes.Cut(after, []byte("\r\n"))
	number := n.w.hist.number(string(owner))
	if o := n.w.owner(number); o.lock >= 0 {
		n.offered[o.lock] = offer{owner: number, until: n.w.now() + o.ttl}
	}
}

// ailing makes the server reply with the errors of the present faults.
func (n *node) ailing() {
	n.server.Trouble = ""
	for _, code := range troubles {
		if n.ails[code] {
			n.server.Trouble = code
		}
	}
}

// troubles has the error codes that Ail makes a server reply with, by the fault's size.
var troubles = []string{"OOM", "MISCONF", "LOADING"}

// forget loses only the locks.
func (n *node) forget() {
	d := n.server.Data()
	for i := range n.w.script.Locks {
		delete(d, lockName(i))
	}
	n.server.Load(d)
	clear(n.barred)
}

// wipe loses everything, with the mark by which the scripts know that the server may
// grant. A server that is down cannot be told to.
func (n *node) wipe() {
	if !n.up {
		return
	}
	n.server.Load(nil)
	n.mayHaveForgotten()
}

// stop ends the server process and its connections.
func (n *node) stop() {
	n.up = false
	n.life++
	n.queue, n.busy, n.spoken = nil, false, nil
	for c := range n.w.everybody {
		c.links[n.index].open = 0
		for _, s := range c.links[n.index].streams {
			if !s.closed {
				s.reset()
			}
		}
	}
}

// comesUp ends the time that the node is down.
func (n *node) comesUp(down time.Duration, d func() simredis.Data, lost bool) {
	life := n.life
	n.w.after(down, outside, func() {
		if n.life != life {
			return
		}
		n.start(d())
		n.up = true
		switch {
		case lost || !n.durable: // clients can tell only when it started
			n.mayHaveForgotten()
		case n.w.now() < n.doubted: // clients saw it as durable for too short a time
			n.unseen = true
		}
		n.w.hist.say("n%d is up", n.index+1)
	})
}

// crash takes the node down for a while. It loses what Crash describes.
func (n *node) crash(down, loss time.Duration) {
	n.stop()
	lost := false
	switch {
	case loss > simredis.Journal:
		lost = true
		n.server.Load(nil)
	case loss > 0:
		lost = n.server.Rewind(loss)
	}
	d := n.server.Data()
	if lost || !n.durable {
		n.mayHaveForgotten()
	}
	n.comesUp(down, func() simredis.Data { return d }, lost)
}

// boot is a crash that loses everything, after which the clock is behind for a while.
func (n *node) boot(behind, lasts time.Duration) {
	const down = 300 * time.Millisecond
	n.stop()
	n.steps -= behind
	n.comesUp(down, func() simredis.Data { return nil }, true)
	n.opens = n.clock().Add(down + n.w.script.quarantine())
	n.w.after(down+lasts, outside, func() {
		n.steps += behind
		n.opens = n.opens.Add(behind) // the step is not time that has passed
		n.setRight = n.w.now()
		n.w.trace.jumped(n)
		n.doubt(2*n.w.script.quarantine() + 2*time.Second)
		n.w.hist.say("the clock of n%d is set right, by %v", n.index+1, behind)
	})
	n.doubt(behind + lasts + 3*n.w.script.quarantine())
}

// replaced puts another server at the node's address: a copy of what it had some time
// ago, which has been running for long.
func (n *node) replaced(age time.Duration) {
	n.stop()
	n.server.Rewind(age)
	d := n.server.Data()
	n.start(d)
	n.server.Backdate(time.Hour)
	n.up = true
	n.mayHaveForgotten()
}

// becomesReplica has the node follow another one for a while, and be a master again
// then: it has the other's data, and no connection broke. A node that follows itself
// has a replica that has its data.
func (n *node) becomesReplica(of *node, d time.Duration) {
	n.server.Follow(of.server)
	n.mayHaveForgotten()
	n.w.trace.replaced(n, of != n)
	n.doubt(d + 2*n.w.script.quarantine() + 2*time.Second)
	life := n.life
	n.w.after(d, outside, func() {
		if n.life == life {
			n.starts++ // each promotion begins another history
			n.server.Promote(n.id())
			n.mayHaveForgotten()
			n.w.trace.replaced(n, of != n)
			n.w.hist.say("n%d is a master again", n.index+1)
		}
	})
}
