package faultproxy

import "time"

type mode uint8

const (
	pass mode = iota
	delay
	blackhole
	holdRequests
	holdReplies
	holdAll
	dropReplies
)

// state is what the proxy was told to do.
type state struct {
	mode      mode
	delay     time.Duration
	released  uint64 // what was received up to this number is delivered, whatever the mode
	refuseNew bool
	cut       *cutOrder // the next reply, or request, to cut, or nil
}

type cutOrder struct {
	match []byte // what the request must contain
	after int    // bytes of the reply to let through; -1: not even the request
}

// Pass lets everything through, what is held included, and takes back
// RefuseNew and a cut that has not happened yet.
func (p *Proxy) Pass() {
	p.set(func(s *state) { *s = state{released: p.seq} })
}

// Delay passes on what it receives d later, in each direction and in order.
func (p *Proxy) Delay(d time.Duration) {
	p.set(func(s *state) { s.mode, s.delay = delay, d })
}

// Blackhole keeps connections open, accepts new ones, and swallows what either
// side sends, the end of a connection included. A connection that has lost
// something cannot go on: it is closed when the mode changes.
func (p *Proxy) Blackhole() { p.setMode(blackhole) }

// DropReplies passes requests on to the server and swallows its replies. As
// after Blackhole, connections that lost something are closed when the mode
// changes.
func (p *Proxy) DropReplies() { p.setMode(dropReplies) }

// HoldRequests keeps requests back until Release or another mode, and then
// delivers them even if the client has gone meanwhile, as a network may.
func (p *Proxy) HoldRequests() { p.setMode(holdRequests) }

// HoldReplies passes requests on to the server and keeps its replies back
// until Release or another mode.
func (p *Proxy) HoldReplies() { p.setMode(holdReplies) }

// HoldAll is HoldRequests and HoldReplies together: a network that is down and
// delivers late once it is up again.
func (p *Proxy) HoldAll() { p.setMode(holdAll) }

// Release delivers what is held at this moment. The mode stays: what comes
// later is held again. Where nothing is ever held it does nothing.
func (p *Proxy) Release() {
	p.set(func(s *state) {
		if s.mode != blackhole && s.mode != dropReplies {
			s.released = p.seq
		}
	})
}

// RefuseNew resets every connection made from now on, until Pass. Those that
// exist, and the mode, are not touched.
func (p *Proxy) RefuseNew() {
	p.set(func(s *state) { s.refuseNew = true })
}

// CutReplyAfter lets n bytes of the next reply on any connection through and
// then closes that connection. It happens once; the server has had the request.
func (p *Proxy) CutReplyAfter(n int) { p.CutReplyTo("", n) }

// CutReplyTo is CutReplyAfter for the reply to the next request that contains
// match, such as the name of a lock. Requests of a client library's own, a
// PING say, are then no danger. Where requests are pipelined, what is cut is
// the first reply on that connection after the request was passed on.
// The match is looked for in each chunk received, not across them.
func (p *Proxy) CutReplyTo(match string, n int) {
	p.set(func(s *state) { s.cut = &cutOrder{match: []byte(match), after: n} })
}

// CutRequest closes the connection on which the next request comes that contains match,
// and lets nothing of it through. It happens once.
func (p *Proxy) CutRequest(match string) { p.CutReplyTo(match, -1) }

// Cut closes all connections now, what is held on them included, and says how
// many there were. New ones are accepted as before.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	return len(p.links)
}

func (p *Proxy) setMode(m mode) {
	p.set(func(s *state) { s.mode = m })
}

func (p *Proxy) set(change func(*state)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.state.mode
	change(&p.state)
	if p.state.mode != was {
		for l := range p.links {
			if l.holed {
				l.close()
			}
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
}
