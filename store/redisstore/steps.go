package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// What waits for a node when the sender comes goes out as one list of steps, as far as it
// can: see script.StepList. Each call keeps its place in the order, its deadline and its
// receiver, and in flight it is a call like others. Only the first of a list says how many
// are answered together.

// lists gathers calls, and takes them apart again. Its fields are the sender's, except batch,
// which is the reader's.
type lists struct {
	list  script.StepList
	batch []call // that are answered together
}

// gather gathers the calls at the front of the queue that can be sent as one list, of which
// there is room for some in flight. It reports whether there are enough for a list to gain.
func (s *lists) gather(waiting *queue[call], room int) bool {
	s.list.Reset()
	for i := range min(waiting.n, room) {
		c := waiting.at(i)
		asking := c.trail != nil && c.trail.asking // for the next command only
		if asking || c.look != nil || !s.list.Add(c.command) {
			break
		}
	}
	if s.list.Gated() {
		return s.list.Len() > 1
	}
	return s.list.Len() >= leastPlain
}

// leastPlain is how many steps a list has at least that does not look at the mark. Fewer cost
// a server as much in a list as alone.
const leastPlain = 4

// sendLocked moves what was gathered into flight over w, and appends it to out.
func (s *lists) sendLocked(w *wire, out []byte, now time.Time) []byte {
	out = s.list.Append(out, !w.canPush, w.channel)
	if s.list.Gated() {
		fillGateLocked(w, out)
	}
	for i := range s.list.Len() {
		c, _ := w.n.waiting.pop()
		if i == 0 {
			c.steps = s.list.Len()
		}
		w.launchLocked(c, now)
	}
	s.list.Reset()
	return out
}

// answer delivers the reply to the list whose first call is c. It is called with the mutex
// of the node of w locked, and unlocks it.
func (s *lists) answer(w *wire, c call, v resp.Value) {
	n := w.n
	s.batch = append(s.batch[:0], c)
	for range c.steps - 1 {
		c, _ := w.flight.pop()
		s.batch = append(s.batch, c)
	}
	// Nothing was executed if the server's scripts were flushed, or if the user lacks the
	// permission for one of the locks, which must not harm the others.
	code := v.Code()
	again := code == resp.NoScript || code == resp.Denied
	if code == resp.NoScript {
		n.s.inFlight.Add(1)
		w.again.push(call{command: script.Lesson(c.command), timeout: c.timeout, to: nobody{}, again: true})
	}
	if again {
		for _, c := range s.batch {
			c.steps, c.again = 0, true
			w.again.push(c)
		}
	}
	drained := w.answeredLocked()
	n.mu.Unlock()
	if !again {
		for i, c := range s.batch {
			r := script.ReplyTo(stepReply(v, i, len(s.batch)))
			r.At = w.at
			w.comparison.finish(w, c, r)
		}
	}
	clear(s.batch)
	if drained {
		w.abandon(w.outdated)
	}
}

// stepReply returns the reply to one step of a list. An error is the reply to all of them,
// and so is a reply that is not one to such a list.
func stepReply(v resp.Value, i, steps int) resp.Value {
	if v.Kind == '*' && len(v.List) == steps {
		return v.List[i]
	}
	if v.Kind == '*' {
		return resp.Value{Kind: '$', Null: true}
	}
	return v
}

// demotes reports whether a reply, or that to a step in it, means that the connection must
// be replaced.
func demotes(t topology, v resp.Value) bool {
	if v.Kind == '-' {
		return t.demoted(v)
	}
	for _, e := range v.List {
		if v.Kind == '*' && e.Kind == '-' && t.demoted(e) {
			return true
		}
	}
	return false
}

// setPushFlagLocked patches the command c at the end of out: it sets the no-push flag if this
// connection cannot receive pushes. In a cluster it also fills in the channel of the
// connection, which a place ends with.
func (w *wire) setPushFlagLocked(c *script.Command, out []byte) []byte {
	if c.Script.Gated() {
		fillGateLocked(w, out)
	}
	c.FillPlace(out, !w.canPush, w.channel)
	return out
}

// fillGateLocked patches the arguments about the mark at the end of out: the run of the
// server that w leads to, and whether this client counts a quarantine of its own. All
// commands that look at the mark end with three such arguments; see gate.lua.
func fillGateLocked(w *wire, out []byte) {
	const tail = "\r\n$1\r\n0\r\n"
	at := len(out) - len(tail)
	if w.run != "" {
		copy(out[at-script.RunPrint:at], w.run)
	}
	if w.n.leftLocked() > 0 {
		out[len(out)-len("0\r\n")] = '1'
	}
}

// appendAskingLocked appends an ASKING command if c was redirected here by a member that
// is giving its slot away.
func (w *wire) appendAskingLocked(c call, out []byte, now time.Time) []byte {
	if c.trail == nil || !c.trail.asking {
		return out
	}
	w.n.s.inFlight.Add(1)
	w.launchLocked(call{command: askingCommand, timeout: c.timeout, to: nobody{}}, now)
	return append(out, askingCommand.Bytes...)
}
