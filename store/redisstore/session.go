package redisstore

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// session is one connection of a node with what the client has agreed on with the server. It
// implements conn.Handler: it makes commands of calls, and answers of replies.
type session struct {
	conn.Pipe[call]
	n *node

	// Set once, before the connection is used.
	canPush bool // the server can push
	// channel is the channel for pushes, in a cluster. noChannel is set if the member had
	// no slots, and so could not have one.
	channel   string
	noChannel bool
	// relayed is set if the channel is not sharded, so that members pass pushes on to each other.
	relayed   bool
	run       string // fingerprint of the server's run ID
	unguarded bool   // it began without what guardLocked sends; guarded by the mutex of the node's peer

	list       script.StepList // of the sender
	taken      []call          // what the reply is for that is being handled; of the reader
	lessons    map[string]bool // hashes of the scripts that the server learns before calls are resent
	comparison comparison
}

// newSession returns a session of n that has no connection yet.
func newSession(n *node) *session {
	s := &session{n: n, lessons: map[string]bool{}}
	s.Pushed = func(v resp.Value) {
		switch {
		case v.IsInvalidation():
			s.invalidated(v)
		case isBreak(v):
			n.s.handleBreakPush(v)
		case string(v.List[1].Text) != membership.Channel: // a change of membership is seen in what is read next
			s.handlePush(v)
		}
	}
	return s
}

// AppendLocked implements conn.Handler. It appends a list of steps if it can.
func (s *session) AppendLocked(out []byte, room int, now time.Time) []byte {
	waiting := &s.n.Waiting
	if gather(&s.list, waiting, room) {
		return s.appendListLocked(out, now)
	}
	c, _ := waiting.Pop()
	out = s.appendAskingLocked(c, out, now)
	out = s.setPushFlagLocked(c.command, append(out, c.command.Bytes...))
	s.LaunchLocked(c, c.timeout, now)
	return out
}

// appendListLocked launches the calls of the list.
func (s *session) appendListLocked(out []byte, now time.Time) []byte {
	out = s.list.Append(out, !s.canPush, s.channel)
	if s.list.Gated() {
		s.fillGateLocked(out)
	}
	for i := range s.list.Len() {
		c, _ := s.n.Waiting.Pop()
		if i == 0 {
			c.steps = s.list.Len()
		}
		s.LaunchLocked(c, c.timeout, now)
	}
	s.list.Reset()
	return out
}

// AppendAgainLocked implements conn.Handler; see resent.
func (s *session) AppendAgainLocked(c call, out []byte, now time.Time) []byte {
	clear(s.lessons) // they go with it
	out = s.appendAskingLocked(c, out, now)
	if c.again == byText {
		out = c.command.ByText(out)
	} else {
		out = append(out, c.command.Bytes...)
	}
	out = s.setPushFlagLocked(c.command, out)
	s.LaunchLocked(c, c.timeout, now)
	return out
}

// appendAskingLocked appends an ASKING command if c was redirected here by a member that
// is giving its slot away.
func (s *session) appendAskingLocked(c call, out []byte, now time.Time) []byte {
	if c.trail == nil || !c.trail.asking {
		return out
	}
	s.n.s.inFlight.Add(1)
	s.LaunchLocked(call{command: askingCommand, to: nobody{}}, c.timeout, now)
	return append(out, askingCommand.Bytes...)
}

// setPushFlagLocked patches the command c at the end of out: it sets the no-push flag if this
// connection cannot receive pushes. In a cluster it also fills in the channel of the
// connection, which a place ends with.
func (s *session) setPushFlagLocked(c *script.Command, out []byte) []byte {
	if c.Script.Gated() {
		s.fillGateLocked(out)
	}
	c.FillPlace(out, !s.canPush, s.channel)
	return out
}

// fillGateLocked patches the argument about the mark at the end of out; see script.FillGate.
func (s *session) fillGateLocked(out []byte) {
	script.FillGate(out, s.run, s.n.leftLocked() > 0)
}

// ProbeLocked implements conn.Handler. Any answer will do.
func (s *session) ProbeLocked(now time.Time) (out []byte, answered func() bool) {
	s.n.s.inFlight.Add(1)
	p := make(poll, 1)
	s.LaunchLocked(call{command: pingCommand, look: p}, s.n.s.o.ConnectTimeout, now)
	return pingCommand.Bytes, func() bool { return !(<-p).Sent }
}

// errDemoted ends a connection to a server that has become a replica. It is no refusal: it
// ends by waiting.
var errDemoted = errors.New("it is not the master any more; asking the sentinels for the new one")

// TakeLocked implements conn.Handler. Nothing was executed if the server's scripts were
// flushed, or if the user lacks the permission for one of the locks of a list, which must
// not harm the others.
func (s *session) TakeLocked(v resp.Value) error {
	c, _ := s.PopLocked()
	s.taken = append(s.taken[:0], c)
	for range c.steps - 1 {
		c, _ := s.PopLocked()
		s.taken = append(s.taken, c)
	}
	listed, code := c.steps > 1, v.Code()
	switch {
	case demotes(s.n.s.topology, v):
		s.resendLocked(singly) // they count as not sent; a release is sent to the new master, see retained.go
		return errDemoted
	case code == resp.NoScript && listed:
		s.teachLocked(script.ListScript(c.command), c.timeout)
		s.resendLocked(taught)
	case code == resp.NoScript && c.command.Script != nil && c.again < byText:
		s.resendLocked(max(c.again+1, taught))
	case code == resp.Denied && listed:
		s.resendLocked(singly)
	}
	return nil
}

// resendLocked has what was taken sent again.
func (s *session) resendLocked(how resent) {
	for _, c := range s.taken {
		if how == taught {
			s.teachLocked(c.command.Script, c.timeout)
		}
		c.steps, c.again = 0, how
		s.AgainLocked(c)
	}
	clear(s.taken)
	s.taken = s.taken[:0]
}

// teachLocked has the server learn a script before calls are sent again. Its text is sent once,
// however many calls need it: texts are up to 50 KB long, and there may be a thousand calls.
func (s *session) teachLocked(unknown *script.Script, timeout time.Duration) {
	if s.lessons[unknown.Hash()] {
		return
	}
	s.lessons[unknown.Hash()] = true
	s.n.s.inFlight.Add(1)
	s.AgainLocked(call{command: &script.Command{Bytes: unknown.Lesson()}, timeout: timeout, to: nobody{}})
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

// Reply implements conn.Handler.
func (s *session) Reply(v resp.Value) {
	s.n.seen.Store(int64(s.At))
	var list script.ListReply
	listed, answered := len(s.taken) > 1, 0
	if listed {
		list = script.ReplyToList(v, len(s.taken))
	}
	for i, c := range s.taken {
		var r script.Reply
		if listed {
			r = list.Step(i, c.command)
		} else {
			r = script.ReplyTo(v)
		}
		r.At = s.At
		switch {
		case c.command == infoCommand:
			s.compare(r.Value)
		case s.comparison.due && c.command.Script != nil:
			s.comparison.withhold(&s.n.Mu, c, r)
			continue
		}
		s.n.answer(c, r)
		answered++
	}
	s.n.settle(answered)
	clear(s.taken)
}

// UpkeepLocked implements conn.Handler.
func (s *session) UpkeepLocked(now time.Time) {
	s.n.clock.readLocked(now)
	s.n.review.askLocked(now)
}

// DueLocked implements conn.Handler.
func (s *session) DueLocked(now time.Time, idle bool) (at time.Time) {
	if idle {
		at = s.testPushLocked(now)
	}
	for _, due := range [...]time.Time{s.n.clock.due, s.n.review.due} {
		if !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at = due
		}
	}
	return at
}

// LostLocked implements conn.Handler.
func (s *session) LostLocked() { s.n.retained.lostLocked(&s.Pipe) }

// Doubted implements conn.Handler.
func (s *session) Doubted(late []call) {
	s.comparison.lose(&s.n.Mu, s.n.finish, store.TimedOut, conn.ErrSilent)
	for _, c := range late {
		s.n.finish(c, script.Reply{Outcome: store.TimedOut, Err: conn.ErrSilent, Sent: true})
	}
}

// Broken implements conn.Handler. It answers all that was in flight: it may have been
// executed.
func (s *session) Broken(why error, waited time.Duration) {
	outcome, err := membership.Classify(why, waited)
	for c, ok := s.Unsent(); ok; c, ok = s.Unsent() {
		s.n.finish(c, script.Reply{Outcome: outcome, Err: err})
	}
	s.comparison.lose(&s.n.Mu, s.n.finish, outcome, err)
	for c, ok := s.Unanswered(); ok; c, ok = s.Unanswered() {
		s.n.finish(c, script.Reply{Outcome: outcome, Err: err, Sent: true})
	}
	s.recheckWaiters()
}

// invalidated handles the push that the server has dropped keys. If it names none, it is
// about all of them; see tracking.go.
func (s *session) invalidated(v resp.Value) {
	if !v.List[1].Null {
		return
	}
	s.comparison.due = true
	n := s.n
	n.Mu.Lock()
	n.s.enqueueLocked(&n.Peer, call{command: infoCommand, timeout: n.s.o.ConnectTimeout, to: nobody{}})
	n.Mu.Unlock()
}

// compare ends the connection if the server's role or data has been replaced since it was
// made. Otherwise it delivers what was withheld.
func (s *session) compare(info resp.Value) {
	is := membership.ParseIdentity(info, resp.Value{})
	s.n.Mu.Lock()
	was := s.n.server
	s.n.Mu.Unlock()
	if is.Role != was.Role || is.Replication != was.Replication {
		s.Abandon(errReplaced)
		return
	}
	s.comparison.due = false
	at := s.At
	for _, h := range s.comparison.take(&s.n.Mu) {
		if h.call.command == nil {
			s.At = h.reply.At
			s.handlePush(h.reply.Value)
		} else {
			s.n.finish(h.call, h.reply)
		}
	}
	s.At = at
}
