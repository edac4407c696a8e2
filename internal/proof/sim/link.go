package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// link is a client's way to one node: driver.Node for the one, and at most
// one connection at a time to the other. It does what TCP and the Redis store
// do: what is sent on one connection arrives in order, once, or never; a call
// without an answer in time breaks its connection; a new connection is made
// when there is something to send, after a pause if that failed before; what
// the old one had under way may arrive after what the new one carries.
type link struct {
	w *world
	c *client
	n *node
	// at is the node's place in the client's list.
	at int

	ear      ear
	conn     *conn   // nil: none
	conns    []*conn // it, and those closed that have something under way
	waiting  []*call
	dialling bool
	retryAt  time.Duration // in the client's timer time
	failures int

	// What faults do to it; counts of those that are on.
	extra               time.Duration
	held, deaf, noSpace int
}

// call is a question under way.
type call struct {
	l    *link
	q    *question
	mc   driver.Call
	done bool
	// replayed: somebody sends it once more. Nobody waits for the answer.
	replayed bool
}

// question is what a call asks: the payload.
type question struct {
	driver.Question
	propose uint64
	owner   int // as the history names it
	to      int // of a Release that gives way; 0: nobody
	worker  int
	lock    int
	next    *question // asked right after it, by itself
}

const connectTimeout = time.Second

var (
	errDown     = errors.New("connection refused")
	errNoAnswer = errors.New("no answer in time")
	errBroken   = errors.New("connection broke")
	errFull     = errors.New("too many requests wait for it")
	errKilled   = errors.New("process is dead")
)

// Addr implements driver.Node.
func (l *link) Addr() string { return fmt.Sprintf("n%d", l.n.index+1) }

// Flush implements driver.Node: the driver has taken what was put.
func (l *link) Flush() {}

// Put implements driver.Node: the driver takes it from here.
func (l *link) Put(mc driver.Call) error {
	full := l.c.full[l.n.index].Load()
	l.w.put(l, mc, full)
	if full {
		return errFull
	}
	if q := mc.Payload.(*question).next; q != nil {
		l.w.put(l, driver.Call{Payload: q, Timeout: mc.Timeout, To: mc.Next, Tag: int(q.Op)}, false)
	}
	return nil
}

// send is the driver's: the call leaves the client, as soon as there is a
// connection.
func (l *link) send(k *call) {
	if k.q.Waits {
		l.ear.listen()
	}
	switch now := l.w.timerNow(); {
	case l.c.dead:
		l.fail(k, quorum.Unsent, store.Unreachable, errKilled)
	case l.conn != nil:
		l.conn.transmit(k)
	case now < l.retryAt:
		l.fail(k, quorum.Unsent, store.Unreachable, errDown)
	default:
		l.waiting = append(l.waiting, k)
		l.dial()
	}
}

// fail answers a call without the node.
func (l *link) fail(k *call, kind quorum.Kind, said store.Outcome, err error) {
	l.w.after(0, arrival, func() {
		l.c.sees(func() { l.answer(k, driver.Reply{Kind: kind, Report: store.NodeOutcome{Outcome: said, Err: err}}) })
	})
}

// answer gives a call its only answer.
func (l *link) answer(k *call, a driver.Reply) {
	if k.done {
		return
	}
	k.done = true
	a.NoPush = k.q.Waits && !l.ear.up
	l.w.hist.answer(k, a)
	l.w.stirred = true
	k.mc.To.Receive(l.at, k.mc.Tag, a)
}

func (l *link) dial() {
	if l.dialling {
		return
	}
	l.dialling = true
	rtt := l.delay() + l.delay()
	switch {
	case l.held > 0 || l.deaf > 0 || rtt > connectTimeout:
		l.w.after(connectTimeout, timer, func() { l.c.sees(func() { l.dialled(errNoAnswer) }) })
	case !l.n.reachable():
		l.w.after(rtt, arrival, func() { l.c.sees(func() { l.dialled(errDown) }) })
	default:
		l.w.after(rtt, arrival, func() { l.c.sees(func() { l.dialled(nil) }) })
	}
}

func (l *link) dialled(err error) {
	l.dialling = false
	waiting := l.waiting
	l.waiting = nil
	if err == nil && !l.n.reachable() { // it died meanwhile
		err = errDown
	}
	if err != nil {
		l.failures++
		l.retryAt = l.w.timerNow() + min(time.Second, 25*time.Millisecond<<min(l.failures, 6))
		for _, k := range waiting {
			l.fail(k, quorum.Unsent, store.Unreachable, err)
		}
		return
	}
	l.failures = 0
	l.conn = &conn{l: l, life: l.n.life}
	l.conns = append(slices.DeleteFunc(l.conns, (*conn).idle), l.conn)
	for _, k := range waiting {
		l.conn.transmit(k)
	}
}

// delay is how long a message takes one way.
func (l *link) delay() time.Duration {
	d := 100*time.Microsecond + time.Duration(l.w.rng.ExpFloat64()*float64(400*time.Microsecond))
	if l.extra > 0 {
		d += l.extra/2 + time.Duration(l.w.rng.Int64N(int64(l.extra)))
	}
	return d
}

// heal lets go what a fault held.
func (l *link) heal() {
	for _, c := range l.conns {
		c.heal()
	}
	l.ear.heal()
}

// cut breaks the connection, if there is one.
func (l *link) cut(late time.Duration) {
	if l.conn != nil {
		l.conn.cut(late)
	}
	if l.ear.up && l.w.rng.IntN(2) == 0 {
		l.ear.cut()
	}
}

// fill tells the client's side whether there is room in the line.
func (l *link) fill() { l.c.full[l.n.index].Store(l.noSpace > 0) }

// replay sends the last commands of the connection once more.
func (l *link) replay(most int) {
	if l.conn == nil || !l.n.reachable() {
		return
	}
	for _, k := range l.conn.served[max(0, len(l.conn.served)-most):] {
		again := &call{l: l, q: k.q, done: true, replayed: true}
		l.w.after(l.delay(), outside, func() {
			if l.n.reachable() {
				l.n.apply(again)
			}
		})
	}
}
