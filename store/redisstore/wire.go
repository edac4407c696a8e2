package redisstore

import (
	"errors"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// wire is one connection to a server that has been greeted. Commands are
// written without waiting for the answers to those before; a goroutine reads
// the answers, which come in the same order, and hands them out.
type wire struct {
	n        *node
	host     string // where it leads
	conn     net.Conn
	raw      *direct // the same; nil: there is no such way
	answered bool    // the server has answered something; of exchange
	hears    bool    // what the server says unasked; set once, before it is used
	// channel on which it does, in a cluster; untuned: it had no slots to have one in.
	channel string
	untuned bool
	run     string // fingerprint of the server's run ID; set once, before it is used
	rest    []byte // what could not be written without waiting; of whoever is sending
	in      replies
	at      clock.Instant // when what is being read came in; of the reader

	// Guarded by the node's mutex until the connection is broken, and of the
	// reader then.
	flight   queue[call]   // sent and not answered
	again    queue[call]   // to be sent again, by their text
	full     bool          // the sender waits for room in flight
	patience time.Duration // how long the oldest in flight may take
	lookAt   time.Time     // when watch has look called; zero: it has not
	used     time.Time     // when the server last answered
	calm     bool          // nothing was sent for long before what is in flight
	outdated error         // why it is to be replaced when all that was sent is answered
	broken   error         // why it is not to be used any more
	doubted  bool          // its answers are not listened to any more, see close.go
	turns    turns

	watch  *time.Timer
	forget func() bool // takes back that it ends with the node
}

var (
	errLineFull    = errors.New("too many requests wait for it")
	errUnasked     = errors.New("the server answers what it was not asked")
	errListChanged = errors.New("the list of nodes that the server is one of has changed")
	errSilent      = errors.New("no answer in time")
)

// start begins to use the connection. Whatever was read of it so far was by
// the same replies.
func (w *wire) start() {
	w.used = time.Now()
	w.watch = time.AfterFunc(time.Hour, w.look)
	w.n.startClock(w.used)
	w.lookAgain(w.used, time.Time{})
	w.turns.begin(w)
	w.n.all.Go(w.read)
}

// take moves what waits into flight, as much as may be, and appends it to out;
// more says whether there is more that can be sent at once.
func (w *wire) take(out []byte) (_ []byte, more bool) {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.broken != nil {
		return out, true
	}
	now := time.Now()
	if w.again.n > 0 {
		// First all answers, then those that have to be sent again, and then
		// the others: nothing overtakes what was put before it.
		if w.flight.n > 0 {
			return out, false
		}
		for c, ok := w.again.pop(); ok; c, ok = w.again.pop() {
			out = w.asks(c, out, now)
			out = w.says(c.command, c.command.byText(out))
			w.launch(c, now)
		}
		return out, n.waiting.n > 0
	}
	if w.outdated != nil {
		return out, false // what waits is for the next connection
	}
	for n.waiting.n > 0 && w.flight.n < maxFlight && len(out) < maxWrite {
		c, _ := n.waiting.pop()
		out = w.asks(c, out, now)
		// Copied while the mutex is held: once in flight the call may be
		// answered, and the command's memory used for another.
		out = w.says(c.command, append(out, c.command.bytes...))
		w.launch(c, now)
	}
	w.full = n.waiting.n > 0 && w.flight.n >= maxFlight
	return out, n.waiting.n > 0 && !w.full
}

// says is out, at whose end c is, with a 1 where we can not be told unasked. In a
// cluster it is told here on which channel we are, which a place ends with.
func (w *wire) says(c *command, out []byte) []byte {
	w.fillGate(c, out)
	if c.tells > 0 && !w.hears {
		out[len(out)-c.tells] = '1'
	} else if c.tells > 0 && w.channel != "" {
		copy(out[len(out)-len("\r\n")-len(w.channel):], w.channel)
	}
	return out
}

// asks appends that the server is to do c although it does not have its slot yet, if
// it is one that was sent here for that. The mutex is held.
func (w *wire) asks(c call, out []byte, now time.Time) []byte {
	if c.trail == nil || !c.trail.asking {
		return out
	}
	w.n.s.inFlight.Add(1)
	w.launch(call{command: askingCommand, timeout: c.timeout, to: nobody{}}, now)
	return append(out, askingCommand.bytes...)
}

// launch counts a call as sent. The mutex is held.
func (w *wire) launch(c call, now time.Time) {
	if w.calm = w.flight.n == 0 && now.Sub(w.used) > maxIdle; w.flight.n == 0 {
		w.patience = 0
	}
	w.patience = max(w.patience, c.timeout)
	c.sent = now
	w.flight.push(c)
	w.turns.most = max(w.turns.most, w.flight.n)
	if late := now.Add(w.patience); w.lookAt.IsZero() || late.Before(w.lookAt) {
		w.lookAt = late
		w.watch.Reset(w.patience)
	}
}

// write sends; whether anything gets through will be seen by the answers.
func (w *wire) write(out []byte) {
	if _, err := w.conn.Write(out); err != nil {
		w.abandon(err)
	}
}

// sendsAtOnce says whether who puts something is to send it: there is a way to do
// so without waiting, the server is known to be there, and nothing has to be sent
// before. The mutex is held, and nobody is sending.
func (w *wire) sendsAtOnce() bool {
	return w.raw != nil && w.outdated == nil && w.fresh() && w.again.n == 0 && len(w.rest) == 0
}

// offer sends without waiting, and says whether something is left to be sent.
func (w *wire) offer(out []byte) (left bool) {
	if len(out) == 0 {
		return false
	}
	n, err := w.raw.writeNow(out)
	if err != nil {
		w.abandon(err)
		return false
	}
	w.rest = out[n:]
	return n < len(out)
}

// look gives the connection up when the oldest in flight has waited too long.
// While answers come in it is called once in a while only.
func (w *wire) look() {
	w.n.mu.Lock()
	late, now := false, time.Now()
	if w.broken != nil || w.doubted {
		w.n.mu.Unlock()
		return // nobody waits for what is in flight
	}
	var again time.Time
	if oldest := w.flight.front(); oldest != nil {
		at := oldest.sent.Add(w.patience)
		if late = !now.Before(at); !late {
			again = at
		}
	} else {
		again = w.prove(now)
	}
	if !late {
		w.n.readClock(now)
		w.lookAgain(now, again)
	}
	w.n.mu.Unlock()
	if late {
		w.n.s.o.rest((1 + w.n.index) * quorum.MaxNodes * quorum.MaxNodes)
		w.abandon(errSilent)
	}
}

// lookAgain has look called at that time, or, if it is zero, not before something is
// sent; and when the server's clock is to be read. The mutex is held.
func (w *wire) lookAgain(now, at time.Time) {
	if due := w.n.clock.due; !due.IsZero() && (at.IsZero() || due.Before(at)) {
		at = due
	}
	if w.lookAt = at; at.IsZero() {
		w.watch.Stop()
	} else {
		w.watch.Reset(at.Sub(now))
	}
}

// abandon ends the connection. Its reader answers what was in flight.
func (w *wire) abandon(err error) {
	w.n.mu.Lock()
	w.giveUp(err)
	w.n.mu.Unlock()
	w.conn.Close()
}

// replace has the connection abandoned as soon as all that was sent over it is
// answered. Nothing more is sent until there is another one. So nobody hears of it, as
// somebody would whose answer was lost.
func (w *wire) replace(why error) {
	w.n.mu.Lock()
	w.outdated = why
	drained := w.drained()
	w.n.mu.Unlock()
	if drained {
		w.abandon(why)
	}
}

// drained reports whether nothing is awaited any more over a connection that is to be
// replaced. The mutex is held.
func (w *wire) drained() bool {
	return w.outdated != nil && w.flight.n == 0 && w.again.n == 0
}

// giveUp has nobody use the connection any more. The mutex is held.
func (w *wire) giveUp(err error) {
	if w.broken != nil {
		return
	}
	n := w.n
	w.broken, n.wire = err, nil
	w.resume()
	switch {
	case n.closed:
		w.broken = store.ErrClosed
	case err == errSilent: // and so it is for everybody else at once
		n.isDown(err, w.patience, 0)
	}
	n.disconnected(w)
	if n.waiting.n > 0 {
		n.wake()
	}
}

// receive reads from the connection.
func (w *wire) receive(b []byte) (int, error) {
	if w.raw != nil {
		return w.raw.Read(b)
	}
	return w.conn.Read(b)
}

// Read is where the replies come from.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.receive(b)
	for err != nil && w.turns.within && isTimeout(err) {
		w.limit(0) // the rest of it comes
		n, err = w.receive(b)
	}
	w.at = w.n.s.o.Clock.Now() // one reading for all that came at once
	return n, err
}

// read is the connection's goroutine.
func (w *wire) read() {
	for {
		if err := w.next(); err != nil {
			w.abandon(err)
			w.n.s.o.rest((1 + w.n.index) * quorum.MaxNodes) // so that others send in between
			w.end()
			return
		}
		w.pause()
	}
}

// next takes in one thing that the server says.
func (w *wire) next() error {
	v, err := w.in.next()
	switch {
	case err != nil:
		return err
	case v.isInvalidation():
		w.invalidated(v)
	case v.kind == '>' && w.hears:
		w.heard(v)
	case w.n.isDemoted(v):
		return w.demoted()
	case v.kind == '>' || !w.hear(v):
		return errUnasked
	}
	return nil
}

// hear hands out one reply, and says whether anybody had asked for it.
func (w *wire) hear(v value) bool {
	n := w.n
	n.mu.Lock()
	if w.broken != nil || w.doubted {
		n.mu.Unlock()
		return true // what is in flight is settled otherwise
	}
	c, asked := w.flight.pop()
	forgot := asked && c.command.script != nil && !c.again && v.isError("NOSCRIPT")
	if forgot { // somebody flushed the server's scripts
		c.again = true
		w.again.push(c)
	}
	if w.full && w.flight.n <= maxFlight/2 || w.again.n > 0 && w.flight.n == 0 {
		w.full = false
		n.wake()
	}
	if w.flight.n == 0 {
		w.used = time.Now()
		if w.calm { // or else it is left to run out: there will be more
			w.calm = false
			w.lookAgain(w.used, w.prove(w.used))
		}
	}
	drained := w.drained()
	n.mu.Unlock()
	if asked && !forgot {
		r := hearing(v)
		r.at = w.at
		n.settle(c, r)
	}
	if drained {
		w.abandon(w.outdated)
	}
	return asked
}

// end answers all that was in flight: it may have been applied.
func (w *wire) end() {
	w.forget()
	w.watch.Stop()
	w.turns.idle.Stop()
	outcome, err := classify(w.broken, w.patience)
	// The server has answered those that were to be sent again, before any that
	// is in flight: they were not applied.
	for c, ok := w.again.pop(); ok; c, ok = w.again.pop() {
		w.n.settle(c, reply{outcome: outcome, err: err})
	}
	for c, ok := w.flight.pop(); ok; c, ok = w.flight.pop() {
		w.n.settle(c, reply{outcome: outcome, err: err, sent: true})
	}
	w.missed()
}

// fresh says whether the server has just answered, or is about to. The mutex is
// held.
func (w *wire) fresh() bool { return w.flight.n > 0 || time.Since(w.used) < maxIdle }

// proven says whether the connection can be used: where it was idle, its
// server is asked first.
func (w *wire) proven() bool {
	n := w.n
	n.mu.Lock()
	sure := w.broken != nil || w.doubted || w.again.n > 0 || w.fresh()
	if sure {
		defer n.mu.Unlock()
		return w.broken == nil
	}
	n.s.inFlight.Add(1)
	p := make(poll, 1)
	w.launch(call{command: pingCommand, timeout: n.s.o.ConnectTimeout, look: p}, time.Now())
	w.resume()
	n.mu.Unlock()
	w.write(pingCommand.bytes)
	return !(<-p).sent // answered, whatever it said
}

var pingCommand, askingCommand = newCommand("PING"), newCommand("ASKING")
