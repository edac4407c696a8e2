package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/simnet"
	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
)

// stream is what a connection has under way, and its server's end. Events say when
// something arrives, and that is always the first segment that waits, so order holds whatever
// the delays.
type stream struct {
	l       *link
	c       *simnet.Conn
	life    int // of the node: a later one does not know this connection
	session *simredis.Conn
	closed  bool // the client has closed its end, or knows that it is broken

	sent    []segment // on their way to the server
	said    [][]byte  // on their way back
	answers []byte    // that leave with the next segment
	turn    int       // arrivals planned in an earlier turn are void

	lastOut, lastIn   time.Duration
	stuckOut, stuckIn int        // arrivals that a fault holds
	served            [][]string // for Replay: the last commands that arrived
}

// segment is what was written at one time: it arrives at one time. Several goroutines
// may have put their commands into it, in an order that nobody can repeat; the server
// does them in another, which depends on their owners only, and answers in theirs.
type segment struct {
	commands [][]string
	parts    []int // of each command that was written, how many of these it is
	order    []int // in which they are done
	fin      bool  // the client has closed its end
	left     time.Duration

	answers [][]byte
	done    int
}

// sort finds the order: what is about no owner first, then the oldest.
func (g *segment) sort(ops []op) {
	for i := range g.commands {
		g.order = append(g.order, i)
	}
	slices.SortStableFunc(g.order, func(a, b int) int {
		x, y := ops[a], ops[b]
		return cmp.Or(cmp.Compare(x.lock, y.lock), cmp.Compare(x.rank, y.rank))
	})
}

// transmit sends what the client has written since it was last looked at.
func (s *stream) transmit() {
	if s.closed || !s.l.c.running() {
		return
	}
	out, closed := s.c.Take()
	g := segment{left: s.l.w.now()}
	var ops []op
	for len(out) > 0 {
		words, rest, err := simredis.Parse(out)
		if err != nil || words == nil {
			panic("sim: a client wrote a part of a command, or none at all")
		}
		out = rest
		parts := [][]string{words}
		if s.l.w.names.isList(s.l.n.server, words) {
			parts = takeApart(words)
		}
		g.parts = append(g.parts, len(parts))
		for _, words := range parts {
			g.commands = append(g.commands, words)
			ops = append(ops, s.l.w.names.parse(s.l.n.server, words))
		}
	}
	g.fin = closed
	if s.closed = closed; !closed && g.commands == nil {
		return
	}
	g.sort(ops)
	for _, i := range g.order {
		o := s.l.w.names.number(ops[i])
		o.operator = s.l.c.operates() && !s.l.w.switches.Disguised
		s.l.w.appears(o, s.l.c)
		s.l.w.trace.sends(o, g.commands[i])
		s.l.c.sent(o)
	}
	s.recordSend(g)
	s.send(g)
}

// recordSend records that the client has written.
func (s *stream) recordSend(g segment) {
	h := &s.l.w.hist
	h.mix(factSends, uint64(s.l.c.index), uint64(s.l.n.index), uint64(len(g.commands)))
	if !h.keep {
		return
	}
	where := fmt.Sprintf("c%d", s.l.c.index+1)
	for _, i := range g.order {
		h.write(where, "-> n%d  %s", s.l.n.index+1, s.l.w.names.read(s.l.n.server, g.commands[i]))
	}
	if g.fin {
		h.write(where, "-> n%d  closes the connection", s.l.n.index+1)
	}
}

// recordReceipt records that the client can read.
func (s *stream) recordReceipt(bytes int) {
	h := &s.l.w.hist
	h.mix(factReceives, uint64(s.l.c.index), uint64(s.l.n.index))
	if h.keep {
		h.write(fmt.Sprintf("c%d", s.l.c.index+1), "<- n%d  %d bytes", s.l.n.index+1, bytes)
	}
}

func (s *stream) send(g segment) {
	s.sent = append(s.sent, g)
	s.lastOut = s.arriveAt(max(s.l.w.now()+s.l.delay(), s.lastOut))
}

func (s *stream) arriveAt(t time.Duration) time.Duration {
	turn := s.turn
	return s.l.w.at(t, outside, func() {
		if turn == s.turn {
			s.arrives()
		}
	})
}

// arrives hands the server the first segment that waits.
func (s *stream) arrives() {
	if s.l.held > 0 {
		s.stuckOut++
		return
	}
	g := s.sent[0]
	s.sent = s.sent[1:]
	if s.l.n.life != s.life || s.l.cut > 0 {
		s.reset()
		return
	}
	s.l.n.serve(s, g)
}

// reset has the client learn that the server's end of the connection is gone.
func (s *stream) reset() {
	s.l.w.after(s.l.delay(), arrival, func() {
		if s.l.held > 0 || s.l.deaf > 0 {
			return // only by getting no answers
		}
		s.l.c.sees(func() { s.breaks(simnet.ErrReset) })
	})
}

// breaks ends the client's end.
func (s *stream) breaks(err error) {
	if !s.closed {
		s.transmit() // what it has written before it knows
		s.closed = true
		s.c.End(err)
	}
}

// says adds a reply or a push message of the server.
func (s *stream) says(b []byte) {
	if len(s.answers) == 0 {
		s.l.n.spoken = append(s.l.n.spoken, s)
	}
	s.answers = append(s.answers, b...)
}

// flush sends what the server has said.
func (s *stream) flush() {
	s.said = append(s.said, s.answers)
	s.answers = nil
	s.lastIn = s.returnAt(max(s.l.w.now()+s.l.delay(), s.lastIn))
}

func (s *stream) returnAt(t time.Duration) time.Duration {
	turn := s.turn
	return s.l.w.at(t, arrival, func() {
		if turn == s.turn {
			s.returns()
		}
	})
}

// returns delivers the first message of the server to the client.
func (s *stream) returns() {
	if s.l.held > 0 || s.l.deaf > 0 {
		s.stuckIn++
		return
	}
	b := s.said[0]
	s.said = s.said[1:]
	if s.life != s.l.n.life {
		return // the restart took the socket's buffer with it
	}
	s.l.c.sees(func() {
		if !s.closed {
			s.recordReceipt(len(b))
			s.c.Deliver(b)
		}
	})
}

// heal delivers the messages that a fault held. Messages under way on a closed connection
// are delivered all the same, or lost: both happen.
func (s *stream) heal() {
	w := s.l.w
	if s.closed && s.stuckOut > 0 && w.rng.IntN(2) == 0 {
		s.abort(nil)
	}
	if s.l.held == 0 {
		for range s.stuckOut {
			s.lastOut = s.arriveAt(max(w.now()+s.l.delay(), s.lastOut))
		}
		s.stuckOut = 0
	}
	if s.l.held == 0 && s.l.deaf == 0 {
		for range s.stuckIn {
			s.lastIn = s.returnAt(max(w.now()+s.l.delay(), s.lastIn))
		}
		s.stuckIn = 0
	}
}

// abort forgets what is under way, except some commands that still arrive, and has the
// server's end closed after them.
func (s *stream) abort(commands []segment) {
	s.turn++
	s.sent, s.said, s.stuckOut, s.stuckIn = nil, nil, 0, 0
	s.sent = append(commands, segment{fin: true})
}

// cut breaks the connection now. A first part of what the client had sent still
// arrives, up to late from now.
func (s *stream) cut(late time.Duration) {
	w := s.l.w
	s.transmit()
	var under []segment // of one command each
	for _, g := range s.sent {
		for _, i := range g.order {
			under = append(under, segment{commands: [][]string{g.commands[i]}, parts: []int{1}, order: []int{0}, left: g.left})
		}
	}
	s.abort(slices.Clone(under[:w.rng.IntN(len(under)+1)]))
	for range s.sent {
		d := s.l.delay()
		if late > 0 {
			d += time.Duration(w.rng.Int64N(int64(late)))
		}
		s.lastOut = s.arriveAt(max(w.now()+d, s.lastOut))
	}
	if !s.closed {
		s.closed = true
		w.after(0, arrival, func() { s.l.c.sees(func() { s.c.End(simnet.ErrReset) }) })
	}
}

// idle reports whether nothing more can happen on a connection.
func (s *stream) idle() bool { return s.closed && len(s.sent) == 0 && s.stuckIn == 0 }
