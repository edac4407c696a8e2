package node

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Session is one connection of a node with what the client has agreed on with the server. It
// implements conn.Handler: it makes commands of calls, and answers of replies.
type Session struct {
	conn.Pipe[Call]
	Node *Node

	// Set once, before the connection is used.
	canPush bool // the server can push
	// Channel is the channel for pushes, in a cluster. NoChannel is set if the member had
	// no slots, and so could not have one.
	Channel   string
	NoChannel bool
	// Relayed is set if the channel is not sharded, so that members pass pushes on to each other.
	Relayed   bool
	run       string // fingerprint of the server's run ID
	unguarded bool   // it began without what guardLocked sends; guarded by the mutex of the node's peer

	list       script.StepList // of the sender
	taken      []Call          // what the reply is for that is being handled; of the reader
	lessons    map[string]bool // hashes of the scripts that the server learns before calls are resent
	comparison comparison
}

// newSession returns a session of n that has no connection yet.
func newSession(n *Node) *Session {
	s := &Session{Node: n, lessons: map[string]bool{}}
	s.Pushed = func(v resp.Value) {
		switch {
		case v.IsInvalidation():
			s.invalidated(v)
		case isBreak(v):
			n.Shared.handleBreakPush(v)
		case string(v.List[1].Text) != membership.Channel: // a change of membership is seen in what is read next
			s.handlePush(v)
		}
	}
	return s
}

// AppendLocked implements conn.Handler. It appends a list of steps if it can.
func (s *Session) AppendLocked(out []byte, room int, now time.Time) []byte {
	waiting := &s.Node.Waiting
	if gather(&s.list, waiting, room) {
		return s.appendListLocked(out, now)
	}
	c, _ := waiting.Pop()
	out = s.appendAskingLocked(c, out, now)
	out = s.setPushFlagLocked(c.Command, append(out, c.Command.Bytes...))
	s.LaunchLocked(c, c.Timeout, now)
	return out
}

// appendListLocked launches the calls of the list.
func (s *Session) appendListLocked(out []byte, now time.Time) []byte {
	out = s.list.Append(out, !s.canPush, s.Channel)
	if s.list.Gated() {
		s.fillGateLocked(out)
	}
	for i := range s.list.Len() {
		c, _ := s.Node.Waiting.Pop()
		if i == 0 {
			c.steps = s.list.Len()
		}
		s.LaunchLocked(c, c.Timeout, now)
	}
	s.list.Reset()
	return out
}

// AppendAgainLocked implements conn.Handler; see resent.
func (s *Session) AppendAgainLocked(c Call, out []byte, now time.Time) []byte {
	clear(s.lessons) // they go with it
	out = s.appendAskingLocked(c, out, now)
	if c.again == byText {
		out = c.Command.ByText(out)
	} else {
		out = append(out, c.Command.Bytes...)
	}
	out = s.setPushFlagLocked(c.Command, out)
	s.LaunchLocked(c, c.Timeout, now)
	return out
}

// appendAskingLocked appends an ASKING command if c was redirected here by a member that
// is giving its slot away.
func (s *Session) appendAskingLocked(c Call, out []byte, now time.Time) []byte {
	if c.Trail == nil || !c.Trail.Asking {
		return out
	}
	s.Node.Shared.InFlight.Add(1)
	s.LaunchLocked(Call{Command: askingCommand, To: Nobody{}}, c.Timeout, now)
	return append(out, askingCommand.Bytes...)
}

// setPushFlagLocked patches the command c at the end of out: it sets the no-push flag if this
// connection cannot receive pushes. In a cluster it also fills in the channel of the
// connection, which a place ends with.
func (s *Session) setPushFlagLocked(c *script.Command, out []byte) []byte {
	if c.Script.Does(script.Gated) {
		s.fillGateLocked(out)
	}
	c.FillPlace(out, !s.canPush, s.Channel)
	return out
}

// fillGateLocked patches the argument about the mark at the end of out; see script.FillGate.
func (s *Session) fillGateLocked(out []byte) {
	script.FillGate(out, s.run, s.Node.leftLocked() > 0)
}

// ProbeLocked implements conn.Handler. Any answer will do.
func (s *Session) ProbeLocked(now time.Time) (out []byte, answered func() bool) {
	s.Node.Shared.InFlight.Add(1)
	p := make(Poll, 1)
	s.LaunchLocked(Call{Command: PingCommand, Poll: p}, s.Node.Shared.Config.ConnectTimeout, now)
	return PingCommand.Bytes, func() bool { return !(<-p).Sent }
}

// errDemoted ends a connection to a server that has become a replica. It is no refusal: it
// ends by waiting.
var errDemoted = errors.New("it is not the master any more; asking the sentinels for the new one")

// TakeLocked implements conn.Handler. Nothing was executed if the server's scripts were
// flushed, or if the user lacks the permission for one of the locks of a list, which must
// not harm the others.
func (s *Session) TakeLocked(v resp.Value) error {
	c, _ := s.PopLocked()
	s.taken = append(s.taken[:0], c)
	for range c.steps - 1 {
		c, _ := s.PopLocked()
		s.taken = append(s.taken, c)
	}
	listed, code := c.steps > 1, v.Code()
	switch {
	case demotes(s.Node.Shared.Topology, v):
		s.resendLocked(singly) // they count as not sent; a release is sent to the new master, see retained.go
		return errDemoted
	case code == resp.NoScript && listed:
		s.teachLocked(c.Command.Script.List, c.Timeout)
		s.resendLocked(taught)
	case code == resp.NoScript && c.Command.Script != nil && c.again < byText:
		s.resendLocked(max(c.again+1, taught))
	case code == resp.Denied && listed:
		s.resendLocked(singly)
	}
	return nil
}

// resendLocked has what was taken sent again.
func (s *Session) resendLocked(how resent) {
	for _, c := range s.taken {
		if how == taught {
			s.teachLocked(c.Command.Script, c.Timeout)
		}
		c.steps, c.again = 0, how
		s.AgainLocked(c)
	}
	clear(s.taken)
	s.taken = s.taken[:0]
}

// teachLocked has the server learn a script before calls are sent again. Its text is sent once,
// however many calls need it: texts are up to 50 KB long, and there may be a thousand calls.
func (s *Session) teachLocked(unknown *script.Script, timeout time.Duration) {
	if s.lessons[unknown.Hash()] {
		return
	}
	s.lessons[unknown.Hash()] = true
	s.Node.Shared.InFlight.Add(1)
	s.AgainLocked(Call{Command: &script.Command{Bytes: unknown.Lesson()}, Timeout: timeout, To: Nobody{}})
}

// demotes reports whether a reply, or that to a step in it, means that the connection must
// be replaced.
func demotes(t Topology, v resp.Value) bool {
	if v.Kind == '-' {
		return t.Demoted(v)
	}
	for _, e := range v.List {
		if v.Kind == '*' && e.Kind == '-' && t.Demoted(e) {
			return true
		}
	}
	return false
}

// Reply implements conn.Handler.
func (s *Session) Reply(v resp.Value) {
	s.Node.seen.Store(int64(s.At))
	var list script.ListReply
	listed, answered := len(s.taken) > 1, 0
	if listed {
		list = script.ReplyToList(v, len(s.taken))
	}
	for i, c := range s.taken {
		var r script.Reply
		if listed {
			r = list.Step(i, c.Command)
		} else {
			r = script.ReplyTo(v)
		}
		r.At = s.At
		switch {
		case c.Command == infoCommand:
			s.compare(r.Value)
		case s.comparison.due && c.Command.Script != nil:
			s.comparison.withhold(&s.Node.Mu, c, r)
			continue
		}
		s.Node.answer(c, r)
		answered++
	}
	s.Node.settle(answered)
	clear(s.taken)
}

// UpkeepLocked implements conn.Handler.
func (s *Session) UpkeepLocked(now time.Time) {
	s.Node.clock.readLocked(now)
	s.Node.review.askLocked(now)
}

// DueLocked implements conn.Handler.
func (s *Session) DueLocked(now time.Time, idle bool) (at time.Time) {
	if idle {
		at = s.testPushLocked(now)
	}
	for _, due := range [...]time.Time{s.Node.clock.due, s.Node.review.due} {
		if !due.IsZero() && (at.IsZero() || due.Before(at)) {
			at = due
		}
	}
	return at
}

// LostLocked implements conn.Handler.
func (s *Session) LostLocked() { s.Node.retained.lostLocked(&s.Pipe) }

// Doubted implements conn.Handler.
func (s *Session) Doubted(late []Call) {
	s.comparison.lose(&s.Node.Mu, s.Node.finish, store.TimedOut, conn.ErrSilent)
	for _, c := range late {
		s.Node.finish(c, script.Reply{Outcome: store.TimedOut, Err: conn.ErrSilent, Sent: true})
	}
}

// Broken implements conn.Handler. It answers all that was in flight: it may have been
// executed.
func (s *Session) Broken(why error, waited time.Duration) {
	outcome, err := membership.Classify(why, waited)
	for c, ok := s.Unsent(); ok; c, ok = s.Unsent() {
		s.Node.finish(c, script.Reply{Outcome: outcome, Err: err})
	}
	s.comparison.lose(&s.Node.Mu, s.Node.finish, outcome, err)
	for c, ok := s.Unanswered(); ok; c, ok = s.Unanswered() {
		s.Node.finish(c, script.Reply{Outcome: outcome, Err: err, Sent: true})
	}
	s.recheckWaiters()
}

// invalidated handles the push that the server has dropped keys. If it names none, it is
// about all of them; see tracking.go.
func (s *Session) invalidated(v resp.Value) {
	if !v.List[1].Null {
		return
	}
	s.comparison.due = true
	n := s.Node
	n.Mu.Lock()
	n.Shared.askLocked(&n.Peer, infoCommand, nil)
	n.Mu.Unlock()
}

// compare ends the connection if the server's role or data has been replaced since it was
// made. Otherwise it delivers what was withheld.
func (s *Session) compare(info resp.Value) {
	is := membership.ParseIdentity(info, resp.Value{})
	s.Node.Mu.Lock()
	was := s.Node.server
	s.Node.Mu.Unlock()
	if is.Role != was.Role || is.Replication != was.Replication {
		s.Abandon(errReplaced)
		return
	}
	s.comparison.due = false
	at := s.At
	for _, h := range s.comparison.take(&s.Node.Mu) {
		if h.call.Command == nil {
			s.At = h.reply.At
			s.handlePush(h.reply.Value)
		} else {
			s.Node.finish(h.call, h.reply)
		}
	}
	s.At = at
}

// What waits for a node when the sender comes goes out as one list of steps, as far as it
// can: see script.StepList. Each call keeps its place in the order, its deadline and its
// receiver, and in flight it is a call like others. Only the first of a list says how many
// are answered together. A call that was redirected is sent alone: while a slot is being moved, a
// member refuses a whole list for one step whose keys are not all there, and a lease could not be
// renewed beside a lock that is wanted.

// gather makes list of the calls at the front of the queue that can be sent as one, of which
// there is room for some in flight. It reports whether there are enough for a list to gain.
func gather(list *script.StepList, waiting *conn.Queue[Call], room int) bool {
	if waiting.Len() < 2 {
		return false
	}
	list.Reset()
	for i := range min(waiting.Len(), room) {
		c := waiting.At(i)
		if c.Trail != nil || c.Poll != nil || !list.Add(c.Command) {
			break
		}
	}
	return list.Len() > 1 // a list of two costs a server a twelfth less than two calls
}
