package redisstore

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// wire is one connection to a server, after the greeting. Commands are pipelined: they
// are written without waiting for earlier answers. A goroutine reads the answers, which
// arrive in the same order, and delivers them.
type wire struct {
	conn.Line
	n       *node
	canPush bool // the server can push; set once, before the connection is used
	// channel is the channel for pushes, in a cluster. untuned is set if the member had
	// no slots, and so could not have one.
	channel   string
	noChannel bool
	run       string        // fingerprint of the server's run ID; set once, before the connection is used
	rest      []byte        // what did not fit into the socket's buffer; of the sender
	at        clock.Instant // when the data that is being read arrived; of the reader

	// Guarded by the node's mutex. Once the connection is broken, the reader owns them.
	flight     queue[call]   // sent and not answered
	again      queue[call]   // to be sent again as text
	full       bool          // the sender waits for room in flight
	patience   time.Duration // how long the oldest call in flight may take
	lookAt     time.Time     // when the watch timer calls look; zero: it is stopped
	used       time.Time     // when the server last answered
	calm       bool          // nothing was sent for long before what is in flight
	outdated   error         // why the connection is replaced once all answers are in; nil: it is not
	broken     error         // why the connection cannot be used any more; nil: it can
	doubted    bool          // later answers are ignored, see close.go
	inline     inlineReader
	lists      lists
	comparison comparison

	watch  *time.Timer
	forget func() bool // detaches the connection from the node's context
}

var (
	errLineFull          = errors.New("too many requests wait for it")
	errMembershipChanged = errors.New("the list of nodes that the server belongs to has changed")
)

// start begins to use the connection. The exchange of the greeting has used the same
// replies.
func (w *wire) start() {
	w.used = time.Now()
	w.watch = time.AfterFunc(time.Hour, w.look)
	w.n.startClockLocked(w.used)
	w.n.startReviewLocked(w.used)
	w.lookAgainLocked(w.used, time.Time{})
	w.inline.begin(w)
	w.n.all.Go(w.read)
}

// take moves enqueued calls into flight, within limits, and appends them to out. It
// reports whether more can be sent at once.
func (w *wire) take(out []byte) (_ []byte, more bool) {
	n := w.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.broken != nil {
		return out, true
	}
	now := time.Now()
	if w.again.n > 0 {
		// First all answers arrive, then calls that must be sent again are sent, and then
		// the others: no call overtakes an earlier one.
		if w.flight.n > 0 {
			return out, false
		}
		for c, ok := w.again.pop(); ok; c, ok = w.again.pop() {
			out = w.appendAskingLocked(c, out, now)
			out = w.setPushFlagLocked(c.command, c.command.ByText(out))
			w.launchLocked(c, now)
		}
		return out, n.waiting.n > 0
	}
	if w.outdated != nil {
		return out, false // the next connection sends what is enqueued
	}
	for n.waiting.n > 0 && w.flight.n < maxFlight && len(out) < maxWrite {
		// Copy while the mutex is held: once in flight, the call may be answered, and the
		// memory of its command reused.
		if w.lists.gather(&n.waiting, maxFlight-w.flight.n) {
			out = w.lists.sendLocked(w, out, now)
			continue
		}
		c, _ := n.waiting.pop()
		out = w.appendAskingLocked(c, out, now)
		out = w.setPushFlagLocked(c.command, append(out, c.command.Bytes...))
		w.launchLocked(c, now)
	}
	w.full = n.waiting.n > 0 && w.flight.n >= maxFlight
	return out, n.waiting.n > 0 && !w.full
}

// launchLocked counts a call as sent.
func (w *wire) launchLocked(c call, now time.Time) {
	if w.calm = w.flight.n == 0 && now.Sub(w.used) > maxIdle; w.flight.n == 0 {
		w.patience = 0
	}
	w.patience = max(w.patience, c.timeout)
	c.sent = now
	w.flight.push(c)
	w.inline.most = max(w.inline.most, w.flight.n)
	if late := now.Add(w.patience); w.lookAt.IsZero() || late.Before(w.lookAt) {
		w.lookAt = late
		w.watch.Reset(w.patience)
	}
}

// write sends. Errors are ignored: missing answers show them.
func (w *wire) write(out []byte) {
	if _, err := w.Conn.Write(out); err != nil {
		w.abandon(err)
	}
}

// sendsAtOnceLocked reports whether the goroutine that enqueues a call may send it: the
// connection can be written without blocking, the server is known to be there, and
// nothing must be sent before. Nobody may be sending.
func (w *wire) sendsAtOnceLocked() bool {
	return w.Raw != nil && w.outdated == nil && w.freshLocked() && w.again.n == 0 && len(w.rest) == 0
}

// offer sends without blocking, and reports whether something is left to be sent.
func (w *wire) offer(out []byte) (left bool) {
	if len(out) == 0 {
		return false
	}
	n, err := w.Raw.WriteNow(out)
	if err != nil {
		w.abandon(err)
		return false
	}
	w.rest = out[n:]
	return n < len(out)
}

// look gives the connection up if the oldest call in flight has waited too long. While
// answers arrive it runs only now and then.
func (w *wire) look() {
	w.n.mu.Lock()
	late, now := false, time.Now()
	if w.broken != nil || w.doubted {
		w.n.mu.Unlock()
		return // no caller waits for the calls in flight
	}
	var again time.Time
	if oldest := w.flight.front(); oldest != nil {
		at := oldest.sent.Add(w.patience)
		if late = !now.Before(at); !late {
			again = at
		}
	} else {
		again = w.testPushLocked(now)
	}
	if !late {
		w.n.readClockLocked(now)
		w.n.reviewLocked(now)
		w.lookAgainLocked(now, again)
	}
	w.n.mu.Unlock()
	if late {
		w.n.s.o.Rest((1 + w.n.index) * quorum.MaxNodes * quorum.MaxNodes)
		w.abandon(conn.ErrSilent)
	}
}

// lookAgainLocked sets the watch timer to the given time, but not later than the next
// reading of the server's clock, or review of its settings. If the time is zero, look is
// needed only after something is sent.
func (w *wire) lookAgainLocked(now, at time.Time) {
	for _, due := range []time.Time{w.n.clock.due, w.n.review.due} {
		if !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at = due
		}
	}
	if w.lookAt = at; at.IsZero() {
		w.watch.Stop()
	} else {
		w.watch.Reset(at.Sub(now))
	}
}

// abandon closes the connection. Its reader answers what was in flight.
func (w *wire) abandon(err error) {
	w.n.mu.Lock()
	w.giveUpLocked(err)
	w.n.mu.Unlock()
	w.Conn.Close()
}

// replace abandons the connection as soon as everything that was sent over it is
// answered, and sends nothing more until then. So no caller loses an answer.
func (w *wire) replace(why error) {
	w.n.mu.Lock()
	w.outdated = why
	drained := w.drainedLocked()
	w.n.mu.Unlock()
	if drained {
		w.abandon(why)
	}
}

// drainedLocked reports whether a connection that is to be replaced has no calls in
// flight any more.
func (w *wire) drainedLocked() bool {
	return w.outdated != nil && w.flight.n == 0 && w.again.n == 0
}

// giveUpLocked marks the connection as unusable.
func (w *wire) giveUpLocked(err error) {
	if w.broken != nil {
		return
	}
	n := w.n
	w.broken, n.wire = err, nil
	w.resumeLocked()
	switch {
	case n.closed:
		w.broken = store.ErrClosed
	case err == conn.ErrSilent: // the node is down for other callers at once
		n.setDownLocked(err, w.patience, 0)
	}
	n.disconnectedLocked(w)
	if n.waiting.n > 0 {
		n.wake()
	}
}

// receive reads from the connection.
func (w *wire) receive(b []byte) (int, error) {
	if w.Raw != nil {
		return w.Raw.Read(b)
	}
	return w.Conn.Read(b)
}

// Read is the source of replies.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.receive(b)
	for err != nil && w.inline.within && conn.IsTimeout(err) {
		w.limit(0) // the rest of the answer is about to arrive
		n, err = w.receive(b)
	}
	w.at = w.n.s.o.Clock.Now() // one reading of the clock for everything that arrived at once
	return n, err
}

// read is the connection's goroutine.
func (w *wire) read() {
	for {
		if err := w.next(); err != nil {
			w.abandon(err)
			w.n.s.o.Rest((1 + w.n.index) * quorum.MaxNodes) // so that others send in between
			w.end()
			return
		}
		w.pause()
	}
}

// next handles one reply or push.
func (w *wire) next() error {
	v, err := w.In.Next()
	switch {
	case err != nil:
		return err
	case v.IsInvalidation():
		w.invalidated(v)
	case v.Kind == '>' && w.canPush:
		w.handlePush(v)
	case demotes(w.n.s.topology, v):
		return w.demoted()
	case v.Kind == '>' || !w.handleReply(v):
		return conn.ErrUnasked
	}
	return nil
}

// handleReply delivers one reply, and reports whether there was a call for it.
func (w *wire) handleReply(v resp.Value) bool {
	n := w.n
	n.mu.Lock()
	if w.broken != nil || w.doubted {
		n.mu.Unlock()
		return true // what is in flight has been answered otherwise
	}
	c, asked := w.flight.pop()
	if c.steps > 1 {
		w.lists.answer(w, c, v)
		return true
	}
	forgot := asked && c.command.Script != nil && !c.again && v.Code() == resp.NoScript
	if forgot { // the server's scripts were flushed
		c.again = true
		w.again.push(c)
	}
	drained := w.answeredLocked()
	n.mu.Unlock()
	if asked && !forgot {
		r := script.ReplyTo(v)
		r.At = w.at
		w.comparison.finish(w, c, r)
	}
	if drained {
		w.abandon(w.outdated)
	}
	return asked
}

// answeredLocked records that calls were answered. It reports whether the connection is to
// be replaced now.
func (w *wire) answeredLocked() (drained bool) {
	n := w.n
	if w.full && w.flight.n <= maxFlight/2 || w.again.n > 0 && w.flight.n == 0 {
		w.full = false
		n.wake()
	}
	if w.flight.n == 0 {
		w.used = time.Now()
		if w.calm { // otherwise the timer runs on: more calls will come
			w.calm = false
			w.lookAgainLocked(w.used, w.testPushLocked(w.used))
		}
	}
	return w.drainedLocked()
}

// end answers all that was in flight: it may have been executed.
func (w *wire) end() {
	w.forget()
	w.watch.Stop()
	w.inline.idle.Stop()
	outcome, err := membership.Classify(w.broken, w.patience)
	// The server has answered the calls that were to be sent again, before any that is in
	// flight: they were not executed.
	for c, ok := w.again.pop(); ok; c, ok = w.again.pop() {
		w.n.finish(c, script.Reply{Outcome: outcome, Err: err})
	}
	w.comparison.lose(w.n, outcome, err)
	for c, ok := w.flight.pop(); ok; c, ok = w.flight.pop() {
		w.n.finish(c, script.Reply{Outcome: outcome, Err: err, Sent: true})
	}
	w.recheckWaiters()
}

// freshLocked reports whether the server has just answered, or is about to.
func (w *wire) freshLocked() bool { return w.flight.n > 0 || time.Since(w.used) < maxIdle }

// proven reports whether the connection works. If it was idle, it sends a PING first.
func (w *wire) proven() bool {
	n := w.n
	n.mu.Lock()
	sure := w.broken != nil || w.doubted || w.again.n > 0 || w.freshLocked()
	if sure {
		defer n.mu.Unlock()
		return w.broken == nil
	}
	n.s.inFlight.Add(1)
	p := make(poll, 1)
	w.launchLocked(call{command: pingCommand, timeout: n.s.o.ConnectTimeout, look: p}, time.Now())
	w.resumeLocked()
	n.mu.Unlock()
	w.write(pingCommand.Bytes)
	return !(<-p).Sent // any answer will do
}

var pingCommand, askingCommand = script.NewCommand("PING"), script.NewCommand("ASKING")
